"""scripts/soak tests [PYTEST ARGS...]: all tests, with all examples and repetitions. CI runs a share."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.project_paths import TOP


def main() -> None:
    words = (sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "--all-needs", *sys.argv[1:])
    environment = {**os.environ, "RDC_TESTS": "all"}
    sys.exit(subprocess.run(words, cwd=TOP, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
