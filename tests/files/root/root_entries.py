"""Helpers that write, read and record entries below a Root, and that drop privileges."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hypothesis import strategies as st

from rdc.files.base.metadata import ANYTHING
from rdc.files.base.paths import is_reserved
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.limits import NAME_BYTES
from rdc.model.entries import Kind, Metadata

PLAIN = Metadata(0o644, 1_600_000_000_123_456_789, 0, 0)


def put(root: Root, path: bytes, data: bytes, metadata: Metadata = PLAIN) -> None:
    with CommitGroup(root, fsync=False, on_commit=lambda _: None) as group:
        replacement = Replacement(root, path)
        replacement.write(data)
        group.add(replacement, path, metadata, False, ANYTHING)


def get(root: Root, path: bytes) -> bytes:
    with root.open_read(path) as source:
        data = b"".join(source.spans())
        source.check_unchanged()
        return data


names = st.binary(min_size=1, max_size=NAME_BYTES).filter(
    lambda n: n not in {b".", b".."} and b"/" not in n and b"\0" not in n and not is_reserved(n)
) | st.sampled_from([b"-rf", b"--", b"a\nb", b"\xff\xfe", b" ", b"...", b"*", b"n" * NAME_BYTES, b"\x1b[2J"])


OPERATIONS: dict[str, Callable[[Root, bytes], object]] = {
    "list": lambda root, path: root.list(path),
    "identity": lambda root, path: root.identity(path),
    "kind": lambda root, path: root.kind(path),
    "metadata": lambda root, path: root.metadata(path),
    "open_read": get,
    "make_directory": lambda root, path: root.make_directory(path),
    "replace_symlink": lambda root, path: root.replace_symlink(path, b"target"),
    "remove_file": lambda root, path: root.remove(path),
    "remove_directory": lambda root, path: root.remove(path, directory=True),
    "set_metadata": lambda root, path: root.set_metadata(path, Kind.FILE, PLAIN, owner=True),
    "replace": lambda root, path: put(root, path, b"new"),
    "directory": lambda root, path: root.directory(path),
}


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's powers; run as another user this changes nothing."""
    if os.geteuid() != 0:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(65534)
    os.seteuid(65534)
    # Dropping ids closes /proc/self to ourselves unless this is set again: PR_SET_DUMPABLE is 4.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
