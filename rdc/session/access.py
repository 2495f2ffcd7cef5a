"""What a peer may do in the directory that it is served: a daemon's module, or the root of an ssh key."""

from __future__ import annotations

from rdc.errors import TrustError
from rdc.model.sync import AlternateUse
from rdc.protocol.messages import Role
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import KeepUndo, SyncOptions
    from rdc.protocol.messages import Open

__all__ = ["Access", "granted_options"]


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one directory. `granted_options` refuses every option that would break them."""

    title: str
    """The directory's name in messages to the peer. It is no path of this machine."""
    read_only: bool = False
    write_only: bool = False
    """Nothing that a session tells its peer depends on the content of an entry that was there before it."""
    no_delete: bool = False
    append_only: bool = False
    """The peer may make new entries, but not change, rename or delete existing ones."""
    owners: bool = False
    """The peer may set owners and groups."""
    no_undo: bool = False
    """No sync of a peer is kept to be undone."""
    keep_undo: KeepUndo | None = None
    """How much every sync of a peer keeps to be undone, whatever the peer asks; None: as it asks."""


def granted_options(open_: Open, access: Access) -> SyncOptions:
    """The options that the session gets. Raises TrustError, which names the refused option.

    Deletions report the names of existing entries, even in a dry run. A write-only directory therefore
    refuses deletions, too.
    """
    options, title = open_.asked, access.title
    if options.files_from is not None and access.write_only:
        raise TrustError(
            f"{title} is write-only: no list can be read from it; --files-from=FILE reads one here"
        )
    if open_.role is Role.SOURCE:
        if access.write_only:
            raise TrustError(f"{title} is write-only: nothing can be fetched from it")
        if options.remove_source_files:
            _check_removal(access)
    elif access.read_only:
        raise TrustError(f"{title} is read-only")
    else:
        _check_changes(options, access)
        if access.keep_undo is not None:
            options = replace(options, keep_undo=access.keep_undo)
    if access.owners:
        return options
    # A device grants more than any owner does.
    makes_devices = options.devices and open_.role is Role.SOURCE
    return replace(options, owner=False, devices=makes_devices)


def _check_changes(options: SyncOptions, access: Access) -> None:
    """Raises TrustError for an option that changes what the peer may not change."""
    # long because each restriction is one test
    title = access.title
    if access.write_only:
        _check_write_only(options, title)
    guarded = access.append_only or access.no_delete or access.write_only
    if options.alternates is not None and options.alternates.use is AlternateUse.COMPARE and guarded:
        # Files go that an alternate directory has.
        raise TrustError(f"nothing may be deleted in {title}: leave out --compare-dest")
    if access.append_only:
        _check_append_only(options, title)
    _check_undo(options, access)
    if options.delete and (access.no_delete or access.write_only):
        raise TrustError(f"nothing may be deleted in {title}: leave out --delete")
    if options.delete_missing_args and guarded:
        raise TrustError(f"nothing may be deleted in {title}: leave out --delete-missing-args")
    if options.force and guarded:
        raise TrustError(f"nothing may be deleted in {title}: leave out --force")
    if options.maps_owners and not access.owners:
        name = "--usermap" if options.usermap else "--groupmap" if options.groupmap else "--no-numeric-ids"
        raise TrustError(f"{title} keeps no owners: leave out {name} (--chown is such a map, too)")
    if options.super_user and not access.owners:
        raise TrustError(f"{title} keeps no owners: leave out --super")
    if options.owner and not access.owners:
        raise TrustError(f"{title} keeps no owners: leave out --owner")


def _check_removal(access: Access) -> None:
    """Raises TrustError if nothing may be removed from the directory as a source."""
    reasons = (
        ("is read-only", access.read_only),
        ("is append-only", access.append_only),
        ("lets nothing be deleted", access.no_delete),
        ("keeps each sync to be undone, and this one could not be", access.keep_undo is not None),
    )
    for reason, given in reasons:
        if given:
            raise TrustError(f"{access.title} {reason}: leave out --remove-source-files")


def _check_write_only(options: SyncOptions, title: str) -> None:
    """Raises TrustError for an option by which a peer learns of content, or of entries that it does not name.

    --guard counts the destination's entries. What --partial-dir keeps would never be taken up.
    """
    named = (
        ("--checksum", options.checksum),
        ("--append", options.append),
        (options.alternates.option if options.alternates else "", options.alternates is not None),
        ("--partial-dir", bool(options.partial_dir)),
        ("--guard", options.guard is not None),
    )
    for name, given in named:
        if given:
            raise TrustError(f"{title} is write-only: nothing in it is compared; leave out {name}")


def _check_append_only(options: SyncOptions, title: str) -> None:
    if options.delete:
        raise TrustError(f"{title} is append-only and nothing may be deleted in it: leave out --delete")
    if options.backup is not None:
        raise TrustError(f"{title} is append-only, so nothing in it is replaced: leave out --backup")
    if options.overwrites:
        name = "--append" if options.append else "--inplace"
        raise TrustError(f"{title} is append-only, so nothing in it is written into: leave out {name}")
    if options.keep_undo is not None:
        raise TrustError(f"{title} is append-only, so nothing in it is replaced: leave out --keep-undo")


def _check_undo(options: SyncOptions, access: Access) -> None:
    title = access.title
    if access.no_undo and options.keep_undo is not None:
        raise TrustError(f"{title} keeps nothing to undo: leave out --keep-undo")
    if options.keep_undo is not None and access.keep_undo is None and (access.no_delete or access.write_only):
        # The bound that the peer chooses drops what earlier syncs kept.
        raise TrustError(
            f"nothing may be deleted in {title}, and old versions neither: leave out --keep-undo"
        )
    if access.keep_undo is not None and (options.overwrites or options.backup is not None):
        excluded = "--backup" if not options.overwrites else "--append" if options.append else "--inplace"
        raise TrustError(f"{title} keeps each sync to be undone, which excludes {excluded}: leave it out")
