"""Finds out which extended attributes a file system keeps, and sets those of an entry of any kind without
opening its content."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from rdc.errors import printable
from rdc.files.base.entry_path import path_of_entry
from rdc.files.facts.compared_entry import compared_entry
from rdc.files.facts.directory_xattrs import read_attributes_at
from rdc.model.attributes import ACCESS_ACL, DEFAULT_ACL, AttributeKinds, Attributes, mode_with_acl
from rdc.model.entries import Metadata
from rdc.model.times import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.root.root import Root
    from rdc.model.entries import Kind

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
            os.getxattr(path_of_entry(root.fileno(), b"."), name)
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
    if root.fakes:
        wanted = _as_stored(root, path, wanted)

    def write(name: bytes, directory: int) -> None:
        with compared_entry(root, path, name, directory, kind, is_meant) as entry:
            now = entry.found
            # For a symlink, the path below /proc would lead to its target.
            follow = not stat.S_ISLNK(now.st_mode)
            path_below_proc = b"/proc/self/fd/%d" % entry.fd if follow else path_of_entry(directory, name)
            read = _stored_at if root.fakes else read_attributes_at
            present = read(path_below_proc, kinds, follow=follow)
            if dict(present) != dict(wanted):
                root.check_made(path, now, "set its extended attributes")
                if root.undo is not None:
                    after = _metadata_with(now, present, wanted, mode)
                    root.undo.changing(path, name, directory, after, attributes=True)
            unlisted = ACCESS_ACL in dict(present) and ACCESS_ACL not in dict(wanted)
            if unlisted:
                # Once the ACL is gone, its mask becomes the rights of the group, and users it named get those
                # of others.
                os.chmod(path_below_proc, stat.S_IMODE(now.st_mode) & ~_OTHERS)
            with _writable(path_below_proc, now):
                try:
                    _write(path_below_proc, present, wanted, follow=follow)
                except _TooLargeError as error:
                    raise root.refused(
                        path,
                        f"set its attribute {printable(error.name)}",
                        expected="one that its file system has room for",
                        found=f"{error.size:,} bytes, which are too many ({errno.errorcode[error.number]})",
                        advice="all else of it is here; make the attribute shorter, or sync to another file"
                        " system",
                    ) from error
            if unlisted:
                os.chmod(path_below_proc, mode)
            if root.undo is not None:
                root.undo.changed(path, os.stat(name, dir_fd=directory, follow_symlinks=False))

    root.perform(path, "set its extended attributes", write)


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


def _stored_at(path_below_proc: bytes, kinds: AttributeKinds, *, follow: bool) -> Attributes:
    """Return the attributes of an entry of --fake-super, as they are."""
    others = read_attributes_at(path_below_proc, kinds & ~AttributeKinds.ACL, follow=follow)
    if AttributeKinds.ACL not in kinds:
        return others
    from rdc.files.facts.faked_acls import stored_acls_at

    return (*others, *stored_acls_at(path_below_proc, follow=follow))


def _metadata_with(now: os.stat_result, present: Attributes, wanted: Attributes, mode: int) -> Metadata:
    """Return the metadata that an entry has with the attributes `wanted`."""
    acl, final = dict(wanted).get(ACCESS_ACL), stat.S_IMODE(now.st_mode)
    if acl is not None:
        final = mode_with_acl(final, acl)
    elif ACCESS_ACL in dict(present):
        final = mode
    return Metadata(final, packed_time(now.st_mtime_ns), now.st_uid, now.st_gid)


def _write(path_below_proc: bytes, present: Attributes, wanted: Attributes, *, follow: bool) -> None:
    before, after = dict(present), dict(wanted)
    for name in before.keys() - after.keys():
        os.removexattr(path_below_proc, name, follow_symlinks=follow)
    # ACLs last: they can remove the write permission that the other attributes need.
    for name, value in sorted(wanted, key=lambda pair: pair[0] in _ACLS):
        if before.get(name) != value:
            try:
                os.setxattr(path_below_proc, name, value, follow_symlinks=follow)
            except OSError as error:
                if error.errno not in _TOO_LARGE or (
                    error.errno == errno.ENOSPC and _is_full(path_below_proc)
                ):
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


def _is_full(path: bytes) -> bool:
    return os.statvfs(path).f_bavail == 0


@contextmanager
def _writable(path_below_proc: bytes, now: os.stat_result) -> Iterator[None]:
    """Lend the owner write permission, which a user other than root needs to set user attributes of a
    file."""
    made_writable = os.geteuid() != 0 and not now.st_mode & stat.S_IWUSR and not stat.S_ISLNK(now.st_mode)
    if made_writable:
        os.chmod(path_below_proc, stat.S_IMODE(os.stat(path_below_proc).st_mode) | stat.S_IWUSR)
    try:
        yield
    finally:
        if made_writable:
            # Only this bit is taken back, because an ACL may have changed the mode meanwhile.
            os.chmod(path_below_proc, stat.S_IMODE(os.stat(path_below_proc).st_mode) & ~stat.S_IWUSR)
