"""The paths of the project's own files, for tests that read, build or start them."""

from pathlib import Path

import rdc

PACKAGE = Path(rdc.__file__).parent
TOP = PACKAGE.parent
"""The checkout."""
KERNEL = TOP / "rdc" / "kernel"
NATIVE = TOP / "tests" / "kernel" / "native"
"""Test programs and libraries in C."""
PSEUDO_SSH = TOP / "tests" / "support" / "pseudo_ssh"
CHILDREN = TOP / "tests" / "support" / "children"
"""Programs that tests start as processes of their own."""
RELAY_SSH = CHILDREN / "relay_ssh.py"


def modules() -> list[Path]:
    """Return the paths of all Python modules of rdc but the facade itself."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def name_of(path: Path) -> str:
    """Return the name by which a module of rdc is imported."""
    return ".".join(("rdc", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
