"""Relative paths below a root: bytes, components between slashes, nothing that could lead anywhere else."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.limits import NAME_BYTES, PATH_BYTES

__all__ = ["check_name", "check_path", "join"]


def join(parent: bytes, name: bytes) -> bytes:
    """`name` below `parent`, where b"" is the root."""
    return parent + b"/" + name if parent else name


def check_name(path: bytes, name: bytes) -> None:
    """Refuse `name` as a component of `path`; the caller guarantees that `name` holds no slash."""
    if not name:
        raise _refused(path, "an empty component (an absolute path, a double or a trailing slash)")
    if len(name) > NAME_BYTES:
        raise _refused(path, f"a component of {len(name)} bytes (the limit is {NAME_BYTES})")
    if name in {b".", b".."}:
        raise _refused(path, f"the component {name.decode()!r}")
    if b"\0" in name:
        raise _refused(path, "a NUL byte")


def check_path(path: bytes) -> None:
    """Refuse a path that is not b"" (the root) or plain names joined by single slashes.

    Raises FileError. Whoever passes this check still cannot leave the root by symlinks: that is the walk's
    part.
    """
    if len(path) > PATH_BYTES:
        raise _refused(path[:NAME_BYTES], f"{len(path)} bytes (the limit is {PATH_BYTES})")
    if path:
        for name in path.split(b"/"):
            check_name(path, name)


def _refused(path: bytes, found: str) -> FileError:
    shown = path.decode("utf-8", "surrogateescape")
    return FileError(
        path, f"{shown}: expected a relative path of plain names, found {found}; this entry is left alone"
    )
