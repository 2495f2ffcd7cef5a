"""The command line. Each verb reads its options, calls the library and prints the result."""

import sys

if sys.platform == "win32":
    # Checked here, before an import of fcntl or the like fails.
    sys.exit("rdc: Windows is not supported; rdc runs on Linux (in WSL too)")
