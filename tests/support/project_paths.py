"""Where the project's own files lie, for tests that read, build or start them."""

from pathlib import Path

import rdc

TOP = Path(rdc.__file__).parent.parent
"""The checkout."""
KERNEL = TOP / "rdc" / "kernel"
NATIVE = TOP / "tests" / "kernel" / "native"
"""Test programs and libraries in C."""
PSEUDO_SSH = TOP / "tests" / "support" / "pseudo_ssh"
CHILDREN = TOP / "tests" / "support" / "children"
"""Programs that tests start as processes of their own."""
RELAY_SSH = CHILDREN / "relay_ssh.py"
