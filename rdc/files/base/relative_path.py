"""Checks relative paths below a root: bytes, plain names joined by single slashes."""

from __future__ import annotations

from rdc.errors import FileError, printable
from rdc.limits.wire import NAME_BYTES, PATH_BYTES, PATH_DEPTH

__all__ = ["check_name", "check_path", "join"]


_NO_NAMES = frozenset((b"", b".", b".."))


def join(parent: bytes, name: bytes) -> bytes:
    """Return the path of `name` in the directory `parent`; b"" is the root."""
    return parent + b"/" + name if parent else name


def check_name(path: bytes, name: bytes) -> None:
    """Raise FileError unless `name` may be a component of `path`. The caller guarantees that it holds no
    slash."""
    if not name:
        raise _refused(path, "an empty component (an absolute path, a double or a trailing slash)")
    if len(name) > NAME_BYTES:
        raise _refused(path, f"a component of {len(name)} bytes (the limit is {NAME_BYTES})")
    if name in {b".", b".."}:
        raise _refused(path, f"the component {name.decode()!r}")
    if b"\0" in name:
        raise _refused(path, "a NUL byte")


def check_path(path: bytes) -> None:
    """Raise FileError unless `path` is b"" (the root) or plain names joined by single slashes.

    A checked path can still meet symlinks; DirectoryCache refuses those.
    """
    if len(path) > PATH_BYTES:
        raise _refused(path[:NAME_BYTES], f"{len(path)} bytes (the limit is {PATH_BYTES})")
    if path.count(b"/") >= PATH_DEPTH:
        raise _refused(path[:NAME_BYTES], f"{path.count(b'/') + 1} components (the limit is {PATH_DEPTH})")
    if path:
        names = path.split(b"/")
        # Checked together: one call per component would dominate the work in deep trees.
        if b"\0" in path or max(map(len, names)) > NAME_BYTES or not _NO_NAMES.isdisjoint(names):
            for name in names:
                check_name(path, name)


def _refused(path: bytes, found: str) -> FileError:
    shown = printable(path)
    return FileError(
        path, f"{shown}: expected a relative path of plain names, found {found}; this entry is left alone"
    )
