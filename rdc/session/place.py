"""Where the destination's tree goes, and what can be said of that place before the session begins."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.confined import Root
from rdc.files.keeping import kept_by
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Kind
from rdc.model.kept import Kept
from rdc.records import dataclass, replace
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start

__all__ = [
    "ANYWHERE",
    "Place",
    "Site",
    "asked_attributes",
    "keeps",
    "open_destination",
    "unkept_attributes",
    "wants_listing",
]


class Site(Protocol):
    """Where the path of a session leads: to what its user means by it, or below a module of a daemon."""

    def open(self, path: bytes, *, create: bool = False, writable: bool = False) -> Root:
        """As Root.open."""

    def has(self, path: bytes) -> bool:
        """Something is there, if only a link that leads nowhere."""

    def has_directory(self, path: bytes) -> bool:
        """What `open` would open."""

    def is_bare(self, path: bytes) -> bool:
        """Nothing is there, or an empty directory: everything the source has will be new."""


class _Anywhere:
    """Paths as this machine reads them, links followed."""

    def open(self, path: bytes, *, create: bool = False, writable: bool = False) -> Root:
        return Root.open(path, create=create, writable=writable)

    def has(self, path: bytes) -> bool:
        return os.path.lexists(path)

    def has_directory(self, path: bytes) -> bool:
        return os.path.isdir(path)

    def is_bare(self, path: bytes) -> bool:
        try:
            with os.scandir(path) as entries:
                return next(entries, None) is None
        except FileNotFoundError:
            return True
        except OSError:
            return False


ANYWHERE: Site = _Anywhere()


def keeps_owner(options: SyncOptions) -> bool:
    """Whether this side, as the destination, sets uid and gid."""
    return os.geteuid() == 0 if options.owner is None else options.owner


def asked_attributes(options: SyncOptions) -> AttributeKinds:
    """Extended attributes that the options want kept, where they can be."""
    found = AttributeKinds.ACL if options.acls else AttributeKinds.NONE
    return found | AttributeKinds.USER | AttributeKinds.ROOT if options.xattrs else found


def unkept_attributes(options: SyncOptions, kept: Kept) -> str | None:
    """What to tell the user where both sides together keep less of extended attributes than was asked for."""
    lost = asked_attributes(options) & ~kept.attributes
    kinds = ((AttributeKinds.ACL, "ACLs"), (AttributeKinds.USER, "extended attributes"))
    names = " and ".join([name for kind, name in kinds if kind in lost])
    return f"{names} are not synced: the file system at one end keeps none" if names else None


def keeps(path: bytes, options: SyncOptions, site: Site = ANYWHERE) -> Kept:
    """What this side keeps of entries, as the destination at `path` (before anything is made there).

    Where nothing is yet, nothing will be compared, and the directory above is asked. Owners are set where
    that is demanded by name, whatever the file system says.
    """
    kept = Kept(keeps_owner(options), attributes=asked_attributes(options))
    if not site.has_directory(path):
        path = os.path.dirname(path.rstrip(b"/")) or b"."
    try:
        root = site.open(path)
    except RdcError:
        return kept
    try:
        found = kept_by(root, probe=not options.dry_run)
        kinds = AttributeKinds.NONE
        if kept.attributes:
            from rdc.files.entry_attributes import attribute_kinds_of

            kinds = attribute_kinds_of(root)
            if not kept.owner:
                # Capabilities are worth as much as owners: who may not give one may not give the other.
                kinds &= ~AttributeKinds.ROOT
    finally:
        root.close()
    return kept.both(replace(found, owner=found.owner or bool(options.owner), attributes=kinds))


def wants_listing(path: bytes, options: SyncOptions, site: Site = ANYWHERE) -> bool:
    """Whether to ask for the source's whole listing at once: all of it will be new, or all files are to be
    compared, and manifests do not tell contents."""
    return options.checksum or site.is_bare(path)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tree goes."""

    root: Root
    name: bytes | None
    """What a single entry is to be called there; None: as at the source."""
    new: bool
    """The directory is made by this run, so nothing is in it; in a dry run `root` is the one above it."""


def open_destination(path: bytes, start: Start, options: SyncOptions, site: Site = ANYWHERE) -> Place:
    """Where `path`, as its user wrote it, puts the tree that `start` announces (rsync's rules).

    A directory is made when its parent exists. A single file goes INTO a directory, or to the path itself
    when nothing or no directory is there and no slash follows it. Raises RdcError with rsync's exit code 11
    when the destination cannot be used at all.
    """
    try:
        place = _open(path, start, site, dry_run=options.dry_run)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    place.root.sparse = options.sparse
    return place


def _open(path: bytes, start: Start, site: Site, *, dry_run: bool) -> Place:
    single_file = start.only and start.entry is not Kind.DIRECTORY
    if single_file and not path.endswith(b"/") and not site.has_directory(path):
        parent = os.path.dirname(path) or b"."
        return Place(site.open(parent, writable=not dry_run), os.path.basename(path), False)
    new = not site.has(path)
    if dry_run and new:
        return Place(site.open(os.path.dirname(path.rstrip(b"/")) or b"."), None, True)
    return Place(site.open(path, create=not dry_run, writable=not dry_run), None, new)
