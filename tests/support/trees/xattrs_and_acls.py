"""Extended attributes and ACLs as tests set them and read them."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from rdc.limits import SMALL_MANIFEST
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL, AttributeKinds, Attributes
from rdc.model.sync import SyncOptions
from tests.support.trees.trees import describe, read_tree

BOTH = SyncOptions(acls=True, xattrs=True, fsync=False)
ALL = AttributeKinds.USER | AttributeKinds.ROOT | AttributeKinds.ACL
MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 1, 2, 4, 16, 32
NOBODY = 0xFFFFFFFF


def acl(named: int, *, owner: int = 6, group: int = 0, mask: int = 7, other: int = 0) -> bytes:
    """One in which user 1234 may do `named`; all are sums of 4 (read), 2 (write), 1."""
    named_entry = (USER, named, 1234)
    unnamed = ((GROUP_OBJ, group, NOBODY), (MASK, mask, NOBODY), (OTHER, other, NOBODY))
    entries = ((USER_OBJ, owner, NOBODY), named_entry, *unnamed)
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def give(path: Path, **attributes: bytes | str) -> None:
    """user.NAME each; where the name has an underscore, the name with a dot in that place."""
    for name, value in attributes.items():
        whole = name.replace("_", ".", 1) if "_" in name else f"user.{name}"
        os.setxattr(path, whole, os.fsencode(value), follow_symlinks=False)


def allow(path: Path, access: bytes | None = None, default: bytes | None = None) -> None:
    for name, value in ((ACCESS_ACL, access), (DEFAULT_ACL, default)):
        if value is not None:
            os.setxattr(path, name, value)


def attributes_of(top: Path) -> dict[str, Attributes]:
    """Return the extended attributes and ACLs of `top` and of each entry below it."""
    found = {}
    for place, directories, names in os.walk(top):
        for path in (Path(place), *(Path(place, name) for name in (*directories, *names))):
            pairs = tuple(
                sorted(
                    (os.fsencode(name), os.getxattr(path, name, follow_symlinks=False))
                    for name in os.listxattr(path, follow_symlinks=False)
                    if not name.startswith("trusted.SGI_ACL_")  # XFS's second names of its ACLs
                )
            )
            if pairs:
                found[str(path.relative_to(top))] = pairs
    return found


def expect_equal(source: Path, destination: Path) -> None:
    assert attributes_of(destination) == attributes_of(source)
    assert describe(read_tree(source), read_tree(destination)) == []
    told = subprocess.run(
        ["rsync", "-aAXni", "--modify-window=-1", f"{source}/", f"{destination}/"],
        check=True,
        capture_output=True,
    )
    assert told.stdout == b""
