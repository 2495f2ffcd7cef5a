"""The permissions of a confined peer: in a module of the daemon, or below the root of an ssh key."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, RdcError, TrustError
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.model.options import Alternates, AlternateUse, KeepUndo, Need
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.protocol.messages import Role
from rdc.protocol.messages.uniting import FEATURE
from rdc.session.serve import Admitted, UniteRights
from rdc.session.trees.sites import ServedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.messages import Open
    from rdc.session.serve import Admission

KEY_TITLE = "the served directory"
"""`Access.title` for the root of a key."""

_KEY_LABEL = b"/"
"""The root of a key appears as "/" in messages to its peer."""


class Access(Record):
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
    """The old data that every sync of a peer keeps for undo, whatever the peer asks; None: as it asks."""


def granted_options(open_: Open, access: Access) -> SyncOptions:
    """Return the options that the session gets. Raises TrustError, which names the refused option.

    What an option needs is declared with it. Deletions report the names of existing entries, even in a dry
    run. A write-only directory therefore refuses deletions, too.
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
        if FEATURE in (open_.needs or "").split(" "):
            if access.read_only:
                raise TrustError(f"{title} is read-only: nothing can be united with it")
            options = replace(options, keep_undo=access.keep_undo)
    elif access.read_only:
        raise TrustError(f"{title} is read-only")
    else:
        _check_needs(options, access)
        _check_undo(options, access)
        if access.keep_undo is not None:
            options = replace(options, keep_undo=access.keep_undo)
    if access.owners:
        return options
    # A device grants more than any owner does.
    makes_devices = options.devices and open_.role is Role.SOURCE
    return replace(options, owner=False, devices=makes_devices)


def unite_rights(access: Access) -> UniteRights:
    """Return what a peer may do in a directory that it unites with its own. What its plan needs besides is
    refused before anything moves."""
    deletes = not (access.no_delete or access.append_only or access.write_only)
    # The bound that a peer chooses drops what earlier syncs kept.
    keeps = not access.no_undo and (deletes or access.keep_undo is not None)
    return UniteRights(not access.append_only, deletes, keeps)


def _check_needs(options: SyncOptions, access: Access) -> None:
    """Raise TrustError for an option that needs what the directory denies.

    --guard counts the destination's entries. What --partial-dir keeps would never be taken up in a write-only
    directory. Files go from the destination that a directory of --compare-dest has.
    """
    for name, declared in OPTIONS.items():
        value = getattr(options, name)
        if value == declared.default or value is False:
            continue
        needs = declared.needs
        if isinstance(value, Alternates) and value.use is AlternateUse.COMPARE:
            needs += (Need.DELETING,)
        for need in needs:
            refusal = _refusal(need, access)
            if refusal:
                raise TrustError(refusal.format(access.title, declared.spelling(value)))


def _refusal(need: Need, access: Access) -> str:
    """Return the error for an option with this need, with {} for the directory and the option; "" for
    none."""
    if need is Need.OWNERS and not access.owners:
        return "{} keeps no owners: leave out {}"
    if need is Need.COMPARING and access.write_only:
        return f"{{}} is write-only: {need.value}; leave out {{}}"
    if need is Need.DELETING and access.append_only:
        return f"{{}} is append-only and {need.value}: leave out {{}}"
    if need is Need.DELETING and (access.no_delete or access.write_only):
        return "nothing may be deleted in {}: leave out {}"
    if need in (Need.REPLACING, Need.OVERWRITING) and access.append_only:
        return f"{{}} is append-only, so {need.value}: leave out {{}}"
    return ""


def _check_removal(access: Access) -> None:
    """Raise TrustError if nothing may be removed from the directory as a source."""
    reasons = (
        ("is read-only", access.read_only),
        ("is append-only", access.append_only),
        ("lets nothing be deleted", access.no_delete),
        ("keeps each sync to be undone, and this one could not be", access.keep_undo is not None),
    )
    for reason, given in reasons:
        if given:
            raise TrustError(f"{access.title} {reason}: leave out --remove-source-files")


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


def open_served(path: bytes, title: str) -> int:
    """Open the directory at an absolute path without ".." and without following a link.

    Returns an O_PATH descriptor. Raises RdcError (exit code 11). Its text names no path of this machine,
    because it goes to the peer.
    """
    try:
        directory = Root.open(b"/").directory(path.strip(b"/"))
    except FileError as error:
        raise RdcError(
            f"{title} is not available: its directory is missing, or a link took its place",
            code=ExitCode.FILE_IO,
        ) from error
    return os.dup(directory.fd)


def admission(path: bytes, access: Access) -> Admission:
    """Make the Admission of a peer that is confined to the directory at `path`; see `open_served`.

    The directory is opened once per session and stays open until the process ends. If another directory takes
    its path meanwhile, the session goes on in the old one.
    """

    def admit(open_: Open) -> Admitted:
        options = granted_options(open_, access)
        top = open_served(path, access.title)
        site = ServedDirectory(lambda: os.dup(top), access.title, _KEY_LABEL, append_only=access.append_only)
        return Admitted(
            site, open_.path, options, uses_content=not access.write_only, rights=unite_rights(access)
        )

    return admit
