"""scripts/soak depth [PYTEST ARGS...]: tests with 16 calls to storage in flight wherever rdc makes several.

Without arguments: those of kills, races and random trees, and those beside rsync.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.project_paths import TOP

DEPTH = "16"

TESTS = (
    *("tests/files", "tests/survey"),
    *(
        f"tests/end_to_end/{feature}"
        for feature in ("check", "concurrent_changes", "deletion", "failures", "rsync", "transfer", "writing")
    ),
)


def main() -> None:
    chosen = sys.argv[1:] or TESTS
    words = (sys.executable, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "--all-needs", *chosen)
    environment = {**os.environ, "RDC_DEPTH": DEPTH}
    sys.exit(subprocess.run(words, cwd=TOP, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
