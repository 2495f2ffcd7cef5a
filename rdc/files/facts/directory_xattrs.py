"""Reads extended attributes of a directory's entries, of any kind, without opening their content.

The C part takes the directory's descriptor and names, a directory at a time. Linux before 6.13 lacks a call
for that. There a path to each entry is used, whose last component is not followed if it is a link
(rdc.files.base.entry_path).
"""

from __future__ import annotations

import errno
import os
from functools import lru_cache, partial

from rdc.files import _files
from rdc.files.base.entry_path import at_entry, has_proc, in_directory
from rdc.files.base.relative_path import check_path, join
from rdc.files.facts.access_times import access_time_at
from rdc.model.entries import strings
from rdc.model.preserved import AttributeKinds, Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root

__all__ = ["read_attributes_at", "read_directory_attributes", "read_entry_attributes"]

_NONE_HERE = {errno.EOPNOTSUPP, errno.ENOSYS}


_extension: ModuleType | None = _files if hasattr(_files, "list_xattrs") else None
"""The C part, which Linux alone has."""
_by_name = _extension is not None and _extension.go_by_name()


def read_directory_attributes(
    root: Root, path: bytes, names: bytes, kinds: AttributeKinds
) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
    """Yield (row, name, attributes or OSError) for each entry of the directory at `path` that has attributes
    of these kinds. Entries of every kind have an access time here.

    `names` are the entries' names, each followed by NUL. An OSError says why an entry's attributes cannot be
    read. Vanished entries are left out.

    Raises FileChangedError if the directory is gone or was replaced, FileError if it cannot be opened.
    """
    if root.reads.followed is not None or (root.reads.fakes and AttributeKinds.ACL in kinds):
        yield from _read_one_by_one(root, path, names, kinds)
        return
    read = _read_with_times if AttributeKinds.ACCESS_TIME in kinds else _read_attributes
    for real, below, rows, some in root.spread(path, names):
        for row, name, found in read(real, below, some, kinds):
            yield rows[row], name, found


def _read_with_times(
    root: Root, path: bytes, names: bytes, kinds: AttributeKinds
) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
    """Like _read_attributes, with the access time of each entry."""
    others = kinds & ~AttributeKinds.ACCESS_TIME
    listed = _read_attributes(root, path, names, others) if others else ()
    extended = {row: found for row, _, found in listed}
    try:
        directory = root.directory(path, reading=True)
    except OSError as error:
        raise root.failure(error, path, "open the directory", reading=True) from error
    for row, name in enumerate(strings(names)):
        found = extended.get(row, ())
        if not isinstance(found, OSError):
            try:
                found = (*access_time_at(directory.fd, name), *found)
            except FileNotFoundError:
                continue
            except OSError as error:
                found = error
        yield row, name, found


def _read_attributes(
    root: Root, path: bytes, names: bytes, kinds: AttributeKinds
) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
    entries: list[bytes] = []
    directory: Directory | None = None
    for row, listed in _listed(root, path, names):
        attributes = _chosen(listed, kinds) if isinstance(listed, bytes) else ()
        if isinstance(listed, bytes) and not attributes:
            continue
        entries = entries or strings(names)
        found: Attributes | OSError
        try:
            if isinstance(listed, int):
                raise OSError(listed, os.strerror(listed))
            directory = directory or root.directory(path, reading=True)
            found = _values_of(directory.fd, entries[row], attributes)
        except FileNotFoundError:
            continue
        except OSError as error:
            found = error
        if found:
            yield row, entries[row], found


def _read_one_by_one(
    root: Root, path: bytes, names: bytes, kinds: AttributeKinds
) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
    """Like read_directory_attributes, for entries of which some are elsewhere (Root.followed), or stand for
    others."""
    for row, name in enumerate(strings(names)):
        found: Attributes | OSError
        try:
            directory, entry = root.locate(join(path, name))
            found = read_entry_attributes(directory.fd, entry, kinds, fakes=root.reads.fakes)
        except FileNotFoundError:
            continue
        except OSError as error:
            found = error
        if found:
            yield row, name, found


def read_entry_attributes(
    directory: int, name: bytes, kinds: AttributeKinds, *, fakes: bool = False
) -> Attributes:
    """Return the attributes of these kinds of the entry `name` in an open directory; b"." is the directory
    itself. `fakes`: its ACLs are those that --fake-super keeps. Raises OSError."""
    time = access_time_at(directory, name) if AttributeKinds.ACCESS_TIME in kinds else ()
    extended = kinds & ~AttributeKinds.ACCESS_TIME
    if not (fakes and AttributeKinds.ACL in kinds):
        return time + _read_extended(directory, name, extended)
    from rdc.files.facts.faked_acls import faked_acls_at

    others = _read_extended(directory, name, extended & ~AttributeKinds.ACL)
    return tuple(sorted((*time, *at_entry(directory, name, faked_acls_at), *others)))


def _read_extended(directory: int, name: bytes, kinds: AttributeKinds) -> Attributes:
    if not kinds:
        return ()
    if _extension is None or not _lists_in_c():
        rows = _list_by_path(directory, [name])
    else:
        _, _, rows = _extension.list_xattrs(directory, b"", name + b"\0", 0, 0, _by_name)
    for _, listed in rows:
        if isinstance(listed, int):
            raise OSError(listed, os.strerror(listed))
        return _values_of(directory, name, _chosen(listed, kinds))
    return ()


def _lists_in_c() -> bool:
    """Return whether the C part can list: it needs the call that goes by name, or /proc."""
    return _extension is not None and (_by_name or has_proc())


def read_attributes_at(path: bytes | int, kinds: AttributeKinds, *, follow: bool) -> Attributes:
    """Return the attributes of these kinds of what a path or a descriptor leads to. Raises OSError."""
    listed = _list_at(path, follow=follow)
    return _values(_chosen(listed, kinds), partial(os.getxattr, path, follow_symlinks=follow))


def _listed(root: Root, path: bytes, names: bytes) -> Iterator[tuple[int, bytes | int]]:
    if _extension is None or not _lists_in_c():
        yield from _list_by_path(root.directory(path, reading=True).fd, strings(names))
        return
    row = offset = 0
    while offset < len(names):
        try:
            # One call opens and lists; most directories need no other.
            row, offset, rows = _extension.list_xattrs(root.fileno(), path, names, row, offset, _by_name)
        except OSError as error:
            check_path(path)
            raise root.failure(error, path, "open the directory", reading=True) from error
        yield from rows


def _list_by_path(directory: int, names: list[bytes]) -> list[tuple[int, bytes | int]]:
    """Return what `_files.list_xattrs` returns for a whole directory."""
    if not has_proc():
        return in_directory(directory, partial(_list_each, names, _call_by_name))
    return _list_each(names, partial(at_entry, directory))


def _call_by_name(name: bytes, call: Callable[[bytes], bytes]) -> bytes:
    return call(name)


def _list_each(
    names: list[bytes], reach: Callable[[bytes, Callable[[bytes], bytes]], bytes]
) -> list[tuple[int, bytes | int]]:
    """List names one by one. `reach` calls with a path to a name."""
    rows: list[tuple[int, bytes | int]] = []
    for row, name in enumerate(names):
        try:
            listed = reach(name, partial(_list_at, follow=False))
        except OSError as error:
            rows.append((row, error.errno or errno.EIO))
        else:
            if listed:
                rows.append((row, listed))
    return rows


def _list_at(path: bytes | int, *, follow: bool) -> bytes:
    """Return the attribute names, each followed by NUL. Raises OSError."""
    try:
        found = os.listxattr(path, follow_symlinks=follow)
    except OSError as error:
        if error.errno in _NONE_HERE:
            return b""
        raise
    return b"".join([os.fsencode(text) + b"\0" for text in found])


# Cached, because most entries have the same attribute names, often only a security label.
@lru_cache(maxsize=64)
def _chosen(listed: bytes, kinds: AttributeKinds) -> tuple[bytes, ...]:
    return tuple(sorted(attribute for attribute in strings(listed) if kinds.has(attribute)))


def _values_of(directory: int, name: bytes, attributes: tuple[bytes, ...]) -> Attributes:
    if _extension is not None and _by_name:
        return _values(attributes, partial(_extension.get_xattr, directory, name))
    return _values(attributes, partial(_value_at, directory, name))


def _value_at(directory: int, name: bytes, attribute: bytes) -> bytes:
    return at_entry(directory, name, partial(os.getxattr, attribute=attribute, follow_symlinks=False))


def _values(attributes: tuple[bytes, ...], value: Callable[[bytes], bytes]) -> Attributes:
    found = []
    for attribute in attributes:
        try:
            found.append((attribute, value(attribute)))
        except OSError as error:
            if error.errno != errno.ENODATA:  # removed since it was listed
                raise
    return tuple(found)
