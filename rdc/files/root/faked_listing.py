"""Shows the entries of a tree that --fake-super made as what they stand for."""

from __future__ import annotations

import os
import stat
from functools import partial

from rdc.errors import FileError
from rdc.files.base.entry_path import at_entry
from rdc.files.base.faked_stat import FAKED_NAME, Faked, read_faked
from rdc.files.base.metadata import kind_of
from rdc.files.base.relative_path import join
from rdc.files.root.confined_access import stat_entry
from rdc.files.root.node_kinds import FORMAT_OF_KIND
from rdc.limits.paths import PATH_BYTES
from rdc.model.entries import DEVICES, ComparedFields, Kind, device_number
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.confined_access import ConfinedAccess
    from rdc.files.root.write_permission import WritePermission
    from rdc.model.listed import Listed

__all__ = ["FakedListing", "faked_at", "show_faked"]

_KINDS = {format_: kind for kind, format_ in FORMAT_OF_KIND.items()}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READABLE = (Kind.FILE, Kind.DIRECTORY)


def show_faked(root: WritePermission) -> None:
    """Have `root` show entries as what they stand for, before any other view of them."""
    root.fakes, root.views = True, (FakedListing(), *root.views)
    root.check.leave_out(ComparedFields(kind=False, size=False))


def faked_at(root: ConfinedAccess, path: bytes) -> Faked | None:
    """Return what the entry at `path` stands for; None if it is what it is. Raises RdcError."""

    def read(name: bytes, parent: int) -> Faked | None:
        return at_entry(parent, name, partial(read_faked, found=stat_entry(name, parent)))

    try:
        return root.perform(path, "read what it stands for", read, reading=True)
    except ValueError as error:
        raise _wrong(root, path, "mode, device, owner and group, as rsync writes them", str(error)) from error


@dataclass(frozen=True, slots=True)
class FakedListing:
    """Reads the attribute of each file and directory of a listing."""

    def shown(self, root: ConfinedAccess, path: bytes, listed: Listed) -> Listed:
        listing = listed.listing
        plain = listing.unpacked()
        kinds, links = bytearray(plain.kinds), dict(plain.links())
        found = False
        for row in [row for kind in _READABLE for row in listing.rows_of(kind)]:
            entry = join(path, plain.names[row])
            try:
                faked = faked_at(root, entry)
                if faked is None:
                    continue
                kind = _kind(root, faked)
                if kind is Kind.SYMLINK:
                    links[row] = _link_text(root, entry)
            except FileError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue
                raise
            found, kinds[row] = True, kind
            plain.modes[row] = stat.S_IMODE(faked.mode)
            plain.uids[row], plain.gids[row] = faked.uid, faked.gid
            if kind is not Kind.FILE:
                plain.sizes[row] = device_number(faked.major, faked.minor) if kind in DEVICES else 0
        if not found:
            return listed
        targets = tuple(links[row] for row in sorted(links))
        return replace(listed, listing=replace(plain, kinds=bytes(kinds), targets=targets).packed())


def _kind(root: ConfinedAccess, faked: Faked) -> Kind:
    kind = _KINDS.get(stat.S_IFMT(faked.mode))
    if kind is None:
        return kind_of(faked.mode)
    if kind in DEVICES:
        try:
            device_number(faked.major, faked.minor)
        except ValueError:
            return Kind.SPECIAL
    return kind if kind in root.shown_nodes else Kind.SPECIAL


def _link_text(root: ConfinedAccess, path: bytes) -> bytes:
    """Read the target of a symlink, which is the content of the file that stands for it."""

    def read(name: bytes, parent: int) -> bytes:
        fd = os.open(name, _READ, dir_fd=parent)
        try:
            return os.pread(fd, PATH_BYTES + 1, 0)
        finally:
            os.close(fd)

    text = root.perform(path, "read the link that it stands for", read, reading=True)
    if not text or b"\0" in text or len(text) > PATH_BYTES:
        raise _wrong(root, path, "the target of a link in it", repr(text[:40]))
    return text


def _wrong(root: ConfinedAccess, path: bytes, expected: str, found: str) -> FileError:
    return root.refused(
        path,
        "read what it stands for",
        expected=expected,
        found=found,
        advice=f"remove its attribute {FAKED_NAME}, or leave out --fake-super",
    )
