"""The effect of options on a source's tree: changed permissions, followed links, removal of what was sent."""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, FileError, ProtocolError, UsageError, printable
from rdc.files.base.syscalls import process_umask
from rdc.files.facts.file_facts import directory_mark
from rdc.files.names.entry_names import UnchangedRemoval
from rdc.files.root.followed_links import FollowedLinks, UnfollowedError
from rdc.lean.records import replace
from rdc.model.entries import (
    Identity,
    Kind,
    PackedInodes,
    PackedListing,
    little_endian,
    little_endian_integers,
)
from rdc.model.options import LinkChoice, ModeChanges, parse_mode_changes
from rdc.progress import Problem, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.protocol.messages import Landed
    from rdc.session.trees.sites import Site
    from rdc.tree.manifest import Manifest


def mode_changes(text: str) -> ModeChanges:
    """Parse the changes for this process. Raises UsageError."""
    try:
        return parse_mode_changes(text, process_umask())
    except ValueError as error:
        raise UsageError(f"--chmod={text}: {error}") from None


def changed_listing(listing: PackedListing, changes: ModeChanges) -> PackedListing:
    """Return the listing with the changed permissions of all that is transferred and no symlink."""
    known: dict[tuple[int, int], int] = {}
    modes = array("H")
    for kind, mode in zip(listing.kinds, little_endian_integers("H", listing.modes), strict=True):
        changed = known.get((kind, mode))
        if changed is None:
            changed = mode
            if kind not in {Kind.SYMLINK, Kind.SPECIAL}:
                changed = changes.applied(mode, directory=kind == Kind.DIRECTORY)
            known[kind, mode] = changed
        modes.append(changed)
    return replace(listing, modes=bytes(little_endian(modes)))


def follow_links(
    root: Root, only: bytes | None, choice: LinkChoice, site: Site, destination: bytes | None
) -> Root:
    """Return `root` as it follows the chosen links, to referents that `site` may read. `only`: the one entry
    that is synced. `destination`: its path, if it is on this machine.

    Raises FileError if `only` is a link that cannot be followed.
    """
    links = links_from(root, choice, site, destination, only=only)
    try:
        if only is not None:
            links.follow_top(root, only)
    except UnfollowedError as error:
        links.top.release()
        raise _unfollowed(root, only, error) from error
    return root.having(replace(root.reads, followed=links))


def links_from(
    root: Root, choice: LinkChoice, site: Site, destination: bytes | None, *, only: bytes | None = None
) -> FollowedLinks:
    """Return the view that follows the chosen links below `root`; see `follow_links`. Raises FileError."""
    top = site.top()
    try:
        return FollowedLinks(
            root,
            top,
            choice,
            only=only,
            title=site.title,
            destination=None if destination is None else os.path.realpath(destination),
        )
    except (OSError, UnfollowedError) as error:
        top.release()
        raise _unfollowed(root, only, error) from error


def _unfollowed(root: Root, only: bytes | None, error: Exception) -> FileError:
    return FileError(b"", f"{printable(root.shown(only or b''))}: cannot follow its links: {error}")


# --remove-source-files at the source: what the destination has leaves the source, if it did not change.

_NEVER = (Kind.DIRECTORY, Kind.SPECIAL)


class SourceRemoval:
    """Removes what the destination confirms. Entries are named by their rows in the source's manifest."""

    def __init__(self, root: Root, *, dry: bool) -> None:
        self._root = root
        self._dry = dry
        self._removal = UnchangedRemoval(root)
        self._devices, self._inodes, self._ctimes = array("Q"), array("Q"), array("q")
        """The identity of each listed entry: device, inode and ctime."""

    def begin(self) -> None:
        """Forget what was listed, before a new walk."""
        for column in (self._devices, self._inodes, self._ctimes):
            del column[:]

    def note(self, inodes: PackedInodes) -> None:
        """Note the inodes of the entries that are listed next."""
        self._devices.extend(little_endian_integers("Q", inodes.devices))
        self._inodes.extend(little_endian_integers("Q", inodes.inodes))
        self._ctimes.extend(little_endian_integers("q", inodes.ctimes))

    def take(self, message: Landed, manifest: Manifest, report: Reporter) -> int:
        """Remove these entries, and return how many are gone. Reports those that stay.

        Raises ProtocolError for entries that no destination may name.
        """
        entries = [manifest.entry(file) for file in message.files]
        parents = {entry.path.rpartition(b"/")[0] for entry in entries}
        if self._dry or len(parents) > 1 or any(entry.kind in _NEVER for entry in entries):
            raise ProtocolError("the remote side asked this one to remove what no destination may name")
        gone = 0
        for file, entry in zip(message.files, entries, strict=True):
            mtime_ns, size = entry.metadata.mtime_ns, entry.size
            try:
                directory, _ = self._root.locate(entry.path)
                if directory_mark(directory.fd) == message.mark:
                    raise FileError(
                        entry.path,
                        f"{printable(self._root.shown(entry.path))}: source and destination are one place, so"
                        " it stays; leave out --remove-source-files",
                        code=ExitCode.PARTIAL,
                    )
                identity = Identity(
                    self._devices[file], self._inodes[file], size, mtime_ns, self._ctimes[file]
                )
                gone += self._removal.remove(entry.path, identity)
            except OSError as error:
                failed = self._root.failure(error, entry.path, "remove it")
                report(Problem(failed.code, entry.path, str(failed)))
            except FileError as error:
                report(Problem(error.code, entry.path, str(error)))
        return gone
