"""The ways to read extended attributes: by name, through /proc and in Python alone.

python -m tests.support.trees.xattr_ways WAY REFUSED TOP reads d/a, d/b and d/c below TOP in one of them ("":
whichever rdc takes), with calls REFUSED since rdc was loaded ("": none), and prints whether that is by name,
and what it read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

from rdc.files import _files
from rdc.files.facts import xattrs
from rdc.files.facts.xattrs import read_directory_attributes
from rdc.files.root.root import Root
from rdc.model.preserved import AttributeKinds, Attributes
from tests.support.running.refused_calls import refuse

__all__ = ["ALL", "WAYS", "Read", "read"]

ALL = AttributeKinds.USER | AttributeKinds.ROOT | AttributeKinds.ACL

Read: TypeAlias = list[tuple[int, bytes, Attributes | int]]
"""Row, name, and attributes or the errno for which they cannot be read."""

WAYS: dict[str, tuple[ModuleType | None, bool]] = {
    "through /proc": (_files, False),
    "in Python": (None, False),
}
"""Values of xattrs._extension and xattrs._by_name."""
if _files.go_by_name():
    WAYS["by name"] = (_files, True)


def read(top: Path, path: bytes, names: bytes, kinds: AttributeKinds = ALL) -> Read:
    root = Root.open(os.fsencode(top))
    try:
        return [
            (row, name, (held.errno or 0) if isinstance(held, OSError) else held)
            for row, name, held in read_directory_attributes(root, path, names, kinds)
        ]
    finally:
        root.close()


if __name__ == "__main__":
    _, way, refused, top = sys.argv
    if way:
        xattrs._extension, xattrs._by_name = WAYS[way]
    if refused:
        refuse(refused)
    sys.stdout.write(repr((xattrs._by_name, read(Path(top), b"d", b"a\0b\0c\0"))))
