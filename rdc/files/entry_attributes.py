"""Which extended attributes a tree's file system keeps, and how its entries get theirs, whatever their kind
and without opening what they hold."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from rdc.files.failure import changed
from rdc.files.metadata import kind_of
from rdc.files.xattrs import place_of, read_attributes_at
from rdc.model.attributes import ACCESS_ACL, DEFAULT_ACL, AttributeKinds, Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.confined import Root
    from rdc.model.entries import Kind

__all__ = ["attribute_kinds_of", "write_entry_attributes"]

_PROBES = ((AttributeKinds.USER, "user.rdc"), (AttributeKinds.ACL, "system.posix_acl_access"))
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_ACLS = (ACCESS_ACL, DEFAULT_ACL)


def attribute_kinds_of(root: Root) -> AttributeKinds:
    """What the file system of `root` itself keeps, and this process may set."""
    if not hasattr(os, "listxattr"):  # macOS
        return AttributeKinds.NONE
    found = AttributeKinds.NONE
    for kind, name in _PROBES:
        try:
            os.getxattr(place_of(root.fileno(), b"."), name)
        except OSError as error:
            if error.errno == errno.ENODATA:
                found |= kind
        else:
            found |= kind
    if AttributeKinds.USER in found and os.geteuid() == 0:
        found |= AttributeKinds.ROOT
    return found


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
    """Give the entry these attributes, and no others of these kinds. Where an access ACL goes, `mode` holds
    again: its group bits were the ACL's mask. `is_meant`: whether what is there, which gets them, is that
    for which they are; of a link that is its name's, as nothing else leads to it.

    Raises FileChangedError where an entry of another kind is by now, or one not meant, FileError.
    """

    def write(name: bytes, directory: int) -> None:
        fd = os.open(name, _PATH, dir_fd=directory)
        try:
            now = os.fstat(fd)
            if kind_of(now.st_mode) is not kind:
                raise changed(path, root.shown(path), kind.name.lower(), kind_of(now.st_mode).name.lower())
            if not is_meant(now):
                raise changed(path, root.shown(path), "the one that was compared", "another")
            # Of a link the descriptor's path would lead to what it points to.
            follow = not stat.S_ISLNK(now.st_mode)
            place = b"/proc/self/fd/%d" % fd if follow else place_of(directory, name)
            held = read_attributes_at(place, kinds, follow=follow)
            with _writable(place, now):
                _write(place, held, wanted, follow=follow)
            if ACCESS_ACL in dict(held) and ACCESS_ACL not in dict(wanted):
                os.chmod(place, mode)
        finally:
            os.close(fd)

    root.perform(path, "set its extended attributes", write)


def _write(place: bytes, held: Attributes, wanted: Attributes, *, follow: bool) -> None:
    before, after = dict(held), dict(wanted)
    for name in before.keys() - after.keys():
        os.removexattr(place, name, follow_symlinks=follow)
    # ACLs last: they can take away the right to write that the others need.
    for name, value in sorted(wanted, key=lambda pair: pair[0] in _ACLS):
        if before.get(name) != value:
            os.setxattr(place, name, value, follow_symlinks=follow)


@contextmanager
def _writable(place: bytes, now: os.stat_result) -> Iterator[None]:
    """Who is not root needs the right to write a file for its user attributes, also of his own."""
    mode = stat.S_IMODE(now.st_mode)
    lend = os.geteuid() != 0 and not mode & stat.S_IWUSR and not stat.S_ISLNK(now.st_mode)
    if lend:
        os.chmod(place, mode | stat.S_IWUSR)
    try:
        yield
    finally:
        if lend:
            # Of the mode as it is by now only that bit is taken back: an ACL may have come with its mask.
            os.chmod(place, stat.S_IMODE(os.stat(place).st_mode) & ~stat.S_IWUSR)
