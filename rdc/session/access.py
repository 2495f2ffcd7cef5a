"""What a peer may do in the directory that it is served: a daemon's module, or the root of an ssh key."""

from __future__ import annotations

from rdc.errors import TrustError
from rdc.protocol.messages.registry import Role
from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages.registry import Open

__all__ = ["Access", "granted_options"]


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one directory. `granted_options` refuses every option that would break them."""

    title: str
    """The directory's name in messages to the peer. It is no path of this machine."""
    read_only: bool = False
    write_only: bool = False
    no_delete: bool = False
    append_only: bool = False
    """The peer may make new entries, but not change, rename or delete existing ones."""
    owners: bool = False
    """The peer may set owners and groups."""


def granted_options(open_: Open, access: Access) -> SyncOptions:
    """The options that the session gets. Raises TrustError, which names the refused option.

    Deletions report the names of existing entries, even in a dry run. A write-only directory therefore
    refuses deletions, too.
    """
    options, title = open_.asked, access.title
    if open_.role is Role.SOURCE:
        if access.write_only:
            raise TrustError(f"{title} is write-only: nothing can be fetched from it")
    elif access.read_only:
        raise TrustError(f"{title} is read-only")
    else:
        _check_changes(options, access)
    return replace(options, owner=options.owner if access.owners else False)


def _check_changes(options: SyncOptions, access: Access) -> None:
    """Raises TrustError for an option that changes what the peer may not change."""
    title = access.title
    if access.append_only:
        if options.delete:
            raise TrustError(f"{title} is append-only and nothing may be deleted in it: leave out --delete")
        if options.backup is not None:
            raise TrustError(f"{title} is append-only, so nothing in it is replaced: leave out --backup")
        if options.overwrites:
            name = "--append" if options.append else "--inplace"
            raise TrustError(f"{title} is append-only, so nothing in it is written into: leave out {name}")
    if options.delete and (access.no_delete or access.write_only):
        raise TrustError(f"nothing may be deleted in {title}: leave out --delete")
    if options.force and (access.append_only or access.no_delete or access.write_only):
        raise TrustError(f"nothing may be deleted in {title}: leave out --force")
    if options.owner and not access.owners:
        raise TrustError(f"{title} keeps no owners: leave out --owner")
