"""The command line: one file per verb; wires and prints, nothing else."""

import sys

if sys.platform == "win32":
    # Before an import fails for want of fcntl, signals or directory descriptors.
    sys.exit("rdc: Windows is not supported; rdc runs on Linux (in WSL too)")
