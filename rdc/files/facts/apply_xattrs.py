"""Finds out which extended attributes a file system keeps, and sets those of an entry of any kind without
opening its content."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from functools import partial

from rdc.errors import printable
from rdc.files.base.entry_path import WithoutProcError, at_entry, leading_to
from rdc.files.base.metadata import set_mode_on_name
from rdc.files.facts.compared_entry import compared_entry
from rdc.files.facts.directory_xattrs import read_attributes_at
from rdc.lean.records import dataclass
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import (
    ACCESS_ACL,
    DEFAULT_ACL,
    AttributeKinds,
    Attributes,
    mode_with_acl,
    packed_time,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.root.root import Root

__all__ = ["attribute_kinds_of", "write_entry_attributes"]

_PROBES = ((AttributeKinds.USER, "user.rdc"), (AttributeKinds.ACL, "system.posix_acl_access"))
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TOO_LARGE = {errno.E2BIG, errno.ENOSPC, errno.ERANGE}
"""Errors for an attribute that is larger than the kernel or the file system takes. Many have room for one
block, and report that as a full disk."""
_ACLS = (ACCESS_ACL, DEFAULT_ACL)


def attribute_kinds_of(root: Root, *, fakes: bool = False) -> AttributeKinds:
    """Return the kinds that the file system of `root` itself keeps and this process may set. `fakes`:
    --fake-super keeps ACLs in other attributes."""
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


@dataclass(frozen=True, slots=True)
class _Reached:
    """An entry, and what a system call gets to reach it."""

    target: bytes | int
    follow: bool
    """Whether the target leads to the entry itself, and not to its name."""
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
    from rdc.files.facts.faked_acls import stored_attributes

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
    from rdc.files.facts.faked_acls import stored_acls_at

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
