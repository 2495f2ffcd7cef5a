"""scripts/soak without_linux [PYTEST ARGS...]: all tests, while the kernel refuses what Linux alone has.

What is lost then, and which tests are of that, is in tests/support/running/lost_without_linux.py.
"""

from __future__ import annotations

import subprocess
import sys

from tests.support.project_paths import TOP

REFUSING = ("-m", "tests.support.running.refused_calls", "LINUX:ENOSYS")
LOST = ("-p", "tests.support.running.lost_without_linux")
PYTEST = ("pytest", *LOST, "-n", "auto", "--dist", "loadfile", "--all-needs")


def main() -> None:
    words = (sys.executable, *REFUSING, *PYTEST, *sys.argv[1:])
    sys.exit(subprocess.run(words, cwd=TOP, check=False).returncode)


if __name__ == "__main__":
    main()
