"""Extended attributes, ACLs and access times: read of directories and open files, and set."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from struct import iter_unpack, pack, unpack_from

from rdc.errors import printable
from rdc.files import _files
from rdc.files.base.metadata import kind_of, set_mode_on_name
from rdc.files.base.paths import (
    WithoutProcError,
    at_entry,
    changed,
    check_path,
    has_proc,
    in_directory,
    join,
    leading_to,
)
from rdc.files.base.syscalls import set_access_time
from rdc.files.root.listing_view import is_of_kind, read_faked
from rdc.lean.records import Record
from rdc.model.entries import Kind, Metadata, strings
from rdc.model.preserved import (
    ACCESS_ACL,
    ACCESS_TIME,
    ACCESS_TIME_BYTES,
    DEFAULT_ACL,
    AttributeKinds,
    Attributes,
    mode_with_acl,
    packed_time,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root


_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ComparedEntry(Record):
    """An entry that is open as a path."""

    fd: int
    found: os.stat_result
    """Its stat, which was compared."""


@contextmanager
def compared_entry(
    root: Root,
    path: bytes,
    name: bytes,
    directory: int,
    kind: Kind,
    is_meant: Callable[[os.stat_result], bool],
) -> Iterator[ComparedEntry]:
    """Open the entry `name` of the open `directory` as a path, for the time of the block, and yield it.
    With --fake-super, an entry of any kind may stand for one of `kind`.

    Raises OSError. Raises FileChangedError if the entry has another kind or `is_meant` refuses its stat.
    """
    fd = os.open(name, _PATH, dir_fd=directory)
    try:
        now = os.fstat(fd)
        if not is_of_kind(now.st_mode, kind) and not root.reads.fakes:
            raise changed(path, root.shown(path), kind.name.lower(), kind_of(now.st_mode).name.lower())
        if not is_meant(now):
            raise changed(path, root.shown(path), "the one that was compared", "another")
        yield ComparedEntry(fd, now)
    finally:
        os.close(fd)


def read_attributes(fd: int | bytes) -> Attributes:
    """Return all attributes of an open file, or at a path, that the caller may see; () if the file system has
    none. Raises OSError."""
    if not hasattr(os, "listxattr"):  # macOS
        return ()
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.ENOSYS}:
            return ()
        raise
    return tuple(sorted((os.fsencode(name), os.getxattr(fd, name)) for name in names))


def write_attributes(fd: int, wanted: Attributes) -> None:
    """Give a file that was just made exactly these attributes. Raises OSError."""
    now = read_attributes(fd)
    if now == wanted:
        return
    for name, _ in now:
        if name not in dict(wanted):
            os.removexattr(fd, name)
    for name, value in wanted:
        if dict(now).get(name) != value:
            os.setxattr(fd, name, value)


# Reads extended attributes of a directory's entries, of any kind, without opening their content.
#
# The C part takes the directory's descriptor and names, a directory at a time. Linux before 6.13 lacks a call
# for that. There a path to each entry is used, whose last component is not followed if it is a link
# (rdc.files.base.paths).

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
    if root.given is not None:
        yield from root.given.attributes(path, names, kinds)
        return
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
    others = _read_extended(directory, name, extended & ~AttributeKinds.ACL)
    return tuple(sorted((*time, *at_entry(directory, name, faked_acls_at), *others)))


def read_top_attributes(root: Root, kinds: AttributeKinds) -> Attributes:
    """Return the attributes of these kinds of the directory that b"" of `root` shows. Raises OSError."""
    if root.given is not None:
        return root.given.top_attributes(kinds)
    return read_entry_attributes(root.top().fd, b".", kinds, fakes=root.reads.fakes)


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


# ACLs of entries that --fake-super made, in the extended attributes in which rsync keeps them.
#
# `user.rsync.%aacl` holds the access ACL, `user.rsync.%dacl` the default ACL of a directory. The form is u32,
# little-endian: the rights of owner, owning group, mask and others, each 0x80 if it is left out; then id and
# rights of each named user and group, users first, with 0x8000_0000 more for a user.
#
# The mode of an entry has parts of its access ACL: the rights of owner and others, and the mask as its group
# bits. Owner and others are therefore left out, and so is the owning group where it has the rights of the
# mask. The number kept as the mask says no more than that there is one: rsync may write that of another
# entry.

STORED_NAMES = {ACCESS_ACL: b"user.rsync.%aacl", DEFAULT_ACL: b"user.rsync.%dacl"}

_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_LEFT_OUT = 0x80
_IS_USER = 0x8000_0000
_NOBODY = 0xFFFF_FFFF
_VERSION = b"\2\0\0\0"
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.EPERM}


def packed_acl(name: bytes, acl: bytes) -> bytes:
    """Return what is kept of an ACL in the kernel's form. `name`: ACCESS_ACL or DEFAULT_ACL. Raises
    ValueError for another form."""
    if acl[:4] != _VERSION or len(acl) % 8 != 4:
        raise ValueError("an ACL of an unknown version")
    rights = dict.fromkeys((_OWNER, _GROUP, _MASK, _OTHER), _LEFT_OUT)
    users: list[tuple[int, int]] = []
    groups: list[tuple[int, int]] = []
    for tag, bits, number in iter_unpack("<HHI", acl[4:]):
        if tag in rights:
            rights[tag] = bits
        elif tag == _USER:
            users.append((number, bits | _IS_USER))
        else:
            groups.append((number, bits))
    named = users + groups
    if name == ACCESS_ACL:
        rights[_OWNER] = rights[_OTHER] = _LEFT_OUT
        if rights[_MASK] in (_LEFT_OUT, rights[_GROUP]):
            rights[_GROUP] = _LEFT_OUT
    head = pack("<4I", rights[_OWNER], rights[_GROUP], rights[_MASK], rights[_OTHER])
    return head + b"".join(pack("<2I", *each) for each in named)


def unpacked_acl(name: bytes, stored: bytes, mode: int) -> bytes:
    """Return the ACL, in the kernel's form, that is stored so for an entry with that mode; b"" for one that
    says what the mode says. Raises ValueError for another form."""
    if len(stored) < 16 or len(stored) % 8:
        raise ValueError(f"{len(stored)} bytes")
    owner, group, mask, others = unpack_from("<4I", stored)
    named = tuple(iter_unpack("<2I", stored[16:]))
    if name == ACCESS_ACL:
        bits = mode >> 3 & 7
        group = bits if group == _LEFT_OUT else group
        if not named and mask == _LEFT_OUT and group == bits:
            return b""
        owner, mask, others = mode >> 6 & 7, bits, mode & 7
    users = [(_USER, bits ^ _IS_USER, number) for number, bits in named if bits & _IS_USER]
    groups = [(_NAMED_GROUP, bits, number) for number, bits in named if not bits & _IS_USER]
    entries = [(_OWNER, owner, _NOBODY), *users, (_GROUP, group, _NOBODY), *groups]
    entries += [(_MASK, mask, _NOBODY)] if mask != _LEFT_OUT else []
    return _packed([*entries, (_OTHER, others, _NOBODY)])


def _packed(entries: Sequence[tuple[int, int, int]]) -> bytes:
    """Return the kernel's form of entries: tag, rights and id. Raises ValueError for unknown rights."""
    if any(bits > 7 for _, bits, _ in entries):
        raise ValueError("rights that do not exist")
    return _VERSION + b"".join(pack("<HHI", *entry) for entry in entries)


def stored_attributes(attributes: Attributes) -> Attributes:
    """Return the attributes under the names and in the form in which --fake-super keeps them. Raises
    ValueError."""
    return tuple(
        (STORED_NAMES[name], packed_acl(name, value)) if name in STORED_NAMES else (name, value)
        for name, value in attributes
    )


def stored_acls_at(path: bytes | int, *, follow: bool) -> Attributes:
    """Return what is kept of the ACLs of what a path or a descriptor leads to, as it is. Raises OSError."""
    found = []
    for name in STORED_NAMES.values():
        try:
            found.append((name, os.getxattr(path, name, follow_symlinks=follow)))
        except OSError as error:
            if error.errno not in _NONE:
                raise
    return tuple(found)


def faked_acls_at(path: bytes) -> Attributes:
    """Return the ACLs that are kept at a path such as `at_entry` gives, in the kernel's form.

    Raises OSError, also for an attribute that rsync would not write."""
    found = dict(stored_acls_at(path, follow=False))
    if not found:
        return ()
    entry = os.stat(path, follow_symlinks=False)
    try:
        faked = read_faked(path, entry)
        mode = stat.S_IMODE(entry.st_mode if faked is None else faked.mode)
        pairs = [
            (name, unpacked_acl(name, found[other], mode))
            for name, other in STORED_NAMES.items()
            if other in found
        ]
    except ValueError as error:
        raise OSError(errno.EBADMSG, f"what --fake-super keeps there has another form: {error}") from error
    return tuple(pair for pair in pairs if pair[1])


_PROBES = ((AttributeKinds.USER, "user.rdc"), (AttributeKinds.ACL, "system.posix_acl_access"))
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TOO_LARGE = {errno.E2BIG, errno.ENOSPC, errno.ERANGE}
"""Errors for an attribute that is larger than the kernel or the file system takes. Many have room for one
block, and report that as a full disk."""
_ACLS = (ACCESS_ACL, DEFAULT_ACL)


def attribute_kinds_of(root: Root, *, fakes: bool = False) -> AttributeKinds:
    """Return the kinds that the file system of `root` itself keeps and this process may set. `fakes`:
    --fake-super keeps ACLs in other attributes."""
    if root.given is not None:
        return root.given.facts.keeps.attributes
    if not hasattr(os, "listxattr"):  # macOS
        return AttributeKinds.NONE
    found = AttributeKinds.ACCESS_TIME
    for kind, name in _PROBES:
        try:
            at_entry(root.fileno(), b".", partial(os.getxattr, attribute=name))
        except OSError as error:
            if error.errno == errno.ENODATA:
                found |= kind
        else:
            found |= kind
    if AttributeKinds.USER in found and os.geteuid() == 0:
        found |= AttributeKinds.ROOT
    if not fakes:
        return found
    return found | AttributeKinds.ACL if AttributeKinds.USER in found else found & ~AttributeKinds.ACL


def write_entry_attributes(
    root: Root,
    path: bytes,
    kind: Kind,
    wanted: Attributes,
    kinds: AttributeKinds,
    mode: int,
    *,
    is_meant: Callable[[os.stat_result], bool] = lambda _: True,
) -> None:
    """Give an entry exactly the attributes `wanted` of these kinds, removing others of the same kinds.

    If an access ACL is removed, `mode` is set again, because the group bits were the ACL's mask. `is_meant`
    checks the stat of the open entry. A symlink's attributes are set by name, since no descriptor can set
    them.

    Raises FileError. Raises FileChangedError if the entry has another kind or is not the intended one.
    """
    if root.reads.fakes:
        wanted = _as_stored(root, path, wanted)

    def write(name: bytes, directory: int) -> None:
        with compared_entry(root, path, name, directory, kind, is_meant) as entry:
            now = entry.found

            def change(target: bytes | int, *, follow: bool) -> None:
                _change(root, path, _Reached(target, follow, name, directory), now, wanted, kinds, mode)

            # A descriptor, or a path through it, would lead to the target of a symlink.
            if not stat.S_ISLNK(now.st_mode):
                with suppress(WithoutProcError), leading_to(entry.fd, directory, name) as target:
                    change(target, follow=True)
                    return
            at_entry(directory, name, partial(change, follow=False))

    root.perform(path, "set its extended attributes", write)


class _Reached(Record):
    """An entry, and what a system call gets to reach it."""

    target: bytes | int
    follow: bool
    """True if the target leads to the entry itself, and not to its name."""
    name: bytes
    directory: int

    def chmod(self, mode: int) -> None:
        if self.follow:
            os.chmod(self.target, mode)
        else:
            set_mode_on_name(self.name, self.directory, mode)

    @property
    def mode(self) -> int:
        return stat.S_IMODE(os.stat(self.name, dir_fd=self.directory, follow_symlinks=False).st_mode)


def _change(
    root: Root,
    path: bytes,
    entry: _Reached,
    now: os.stat_result,
    wanted: Attributes,
    kinds: AttributeKinds,
    mode: int,
) -> None:
    """Do what write_entry_attributes does, for an entry with the stat `now`. Raises OSError, FileError."""
    read = _stored_at if root.reads.fakes else read_attributes_at
    present = read(entry.target, kinds, follow=entry.follow)
    if dict(present) != dict(wanted):
        root.check_made(path, now, "set its extended attributes")
        if root.writes.undo is not None:
            after = _metadata_with(now, present, wanted, mode)
            root.writes.undo.changing(path, entry.name, entry.directory, after, attributes=True)
    unlisted = ACCESS_ACL in dict(present) and ACCESS_ACL not in dict(wanted)
    if unlisted:
        # Once the ACL is gone, its mask becomes the rights of the group, and users it named get those of
        # others.
        entry.chmod(stat.S_IMODE(now.st_mode) & ~_OTHERS)
    with _writable(entry, now):
        try:
            _write(entry, present, wanted)
        except _TooLargeError as error:
            raise root.refused(
                path,
                f"set its attribute {printable(error.name)}",
                expected="one that its file system has room for",
                found=f"{error.size:,} bytes, which are too many ({errno.errorcode[error.number]})",
                advice="all else of it is here; make the attribute shorter, or sync to another file system",
            ) from error
    if unlisted:
        entry.chmod(mode)
    if root.writes.undo is not None:
        root.writes.undo.changed(path, os.stat(entry.name, dir_fd=entry.directory, follow_symlinks=False))


def _as_stored(root: Root, path: bytes, wanted: Attributes) -> Attributes:
    """Return the attributes as --fake-super stores them. Raises FileError for an ACL of another form."""
    try:
        return stored_attributes(wanted)
    except ValueError as error:
        raise root.refused(
            path,
            "keep its ACL",
            expected="an ACL of Linux",
            found=str(error),
            advice="leave out --fake-super or -A",
        ) from error


def _stored_at(target: bytes | int, kinds: AttributeKinds, *, follow: bool) -> Attributes:
    """Return the attributes of an entry of --fake-super, as they are."""
    others = read_attributes_at(target, kinds & ~AttributeKinds.ACL, follow=follow)
    if AttributeKinds.ACL not in kinds:
        return others
    return (*others, *stored_acls_at(target, follow=follow))


def _metadata_with(now: os.stat_result, present: Attributes, wanted: Attributes, mode: int) -> Metadata:
    """Return the metadata that an entry has with the attributes `wanted`."""
    acl, final = dict(wanted).get(ACCESS_ACL), stat.S_IMODE(now.st_mode)
    if acl is not None:
        final = mode_with_acl(final, acl)
    elif ACCESS_ACL in dict(present):
        final = mode
    return Metadata(final, packed_time(now.st_mtime_ns), now.st_uid, now.st_gid)


def _write(entry: _Reached, present: Attributes, wanted: Attributes) -> None:
    before, after = dict(present), dict(wanted)
    for name in before.keys() - after.keys():
        os.removexattr(entry.target, name, follow_symlinks=entry.follow)
    # ACLs last: they can remove the write permission that the other attributes need.
    for name, value in sorted(wanted, key=lambda pair: pair[0] in _ACLS):
        if before.get(name) != value:
            try:
                os.setxattr(entry.target, name, value, follow_symlinks=entry.follow)
            except OSError as error:
                if error.errno not in _TOO_LARGE or (error.errno == errno.ENOSPC and _is_full(entry)):
                    raise
                raise _TooLargeError(name, len(value), error.errno) from error


class _TooLargeError(Exception):
    """The file system has no room for an attribute."""

    def __init__(self, name: bytes, size: int, number: int) -> None:
        super().__init__(name)
        self.name = name
        self.size = size
        self.number = number
        """The errno."""


def _is_full(entry: _Reached) -> bool:
    return os.fstatvfs(entry.directory).f_bavail == 0


@contextmanager
def _writable(entry: _Reached, now: os.stat_result) -> Iterator[None]:
    """Lend the owner write permission, which a user other than root needs to set user attributes of a
    file."""
    made_writable = os.geteuid() != 0 and not now.st_mode & stat.S_IWUSR and not stat.S_ISLNK(now.st_mode)
    if made_writable:
        entry.chmod(entry.mode | stat.S_IWUSR)
    try:
        yield
    finally:
        if made_writable:
            # Only this bit is taken back, because an ACL may have changed the mode meanwhile.
            entry.chmod(entry.mode & ~stat.S_IWUSR)


_NS = 10**9


def access_time_at(directory: int, name: bytes) -> Attributes:
    """Return the access time of the entry `name` in an open directory, as an attribute. What is less than a
    second is cut off towards the past. Raises OSError."""
    return _access_time_of(os.stat(name, dir_fd=directory, follow_symlinks=False))


def write_entry_access_time(
    root: Root,
    path: bytes,
    kind: Kind,
    wanted: Attributes,
    *,
    is_meant: Callable[[os.stat_result], bool],
) -> None:
    """Set the access time in `wanted` of an entry that is no symlink; nothing if `wanted` has none. Its
    modification time stays. `is_meant` checks the stat of the open entry.

    Raises FileError. Raises FileChangedError if the entry has another kind or is not the intended one.
    """
    value = dict(wanted).get(ACCESS_TIME)
    if value is None:
        return

    def write(name: bytes, directory: int) -> None:
        with compared_entry(root, path, name, directory, kind, is_meant) as entry:
            now = entry.found
            if _access_time_of(now) != ((ACCESS_TIME, value),):
                root.check_made(path, now, "set its access time")
                seconds = int.from_bytes(value, "little", signed=True)
                try:
                    set_access_time(entry.fd, seconds)
                except OSError as error:
                    if error.errno not in {errno.ENOSYS, errno.EINVAL}:
                        raise
                    # Python sets both times, so a modification time that is set now would be lost.
                    with leading_to(entry.fd, directory, name) as target:
                        os.utime(target, ns=(seconds * _NS, now.st_mtime_ns))
                if root.writes.undo is not None:
                    root.writes.undo.changed(path, os.stat(name, dir_fd=directory, follow_symlinks=False))

    root.perform(path, "set its access time", write)


def _access_time_of(found: os.stat_result) -> Attributes:
    seconds = found.st_atime_ns // _NS
    return ((ACCESS_TIME, seconds.to_bytes(ACCESS_TIME_BYTES, "little", signed=True)),)
