"""The parts of a destination, for comparisons of whole trees and for turns of changes."""

from __future__ import annotations

import contextlib
from functools import partial

from rdc.errors import ExitCode, RdcError
from rdc.progress import Problem
from rdc.protocol.messages import Done
from rdc.session.applying.applying_context import ApplyingContext
from rdc.session.applying.blocked_entries import BlockedEntries
from rdc.session.applying.deletion import Deletion
from rdc.session.applying.directory_changes import DirectoryChanges
from rdc.session.applying.extraneous_entries import ExtraneousEntries
from rdc.session.applying.file_router import FileRouter
from rdc.session.applying.unarrived import Unarrived
from rdc.session.landing.file_commits import FileCommits
from rdc.session.landing.transfer_context import TransferContext
from rdc.session.runtime.event_relay import TransferProgress
from rdc.tree.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Metadata
    from rdc.protocol.messages import Start
    from rdc.session.applying.hard_links import HardLinks
    from rdc.session.destination.context import DestinationContext
    from rdc.session.destination.guarded_changes import GuardedChanges
    from rdc.session.landing.listed_entries import Extraneous
    from rdc.session.landing.partial_files import PartialFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.session.trees.skipped_entries import SkippedEntries
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.selection import Selection

__all__ = ["DestinationParts"]


class DestinationParts:
    """Builds the parts of one destination and connects them."""

    def __init__(
        self,
        context: DestinationContext,
        partial_files: PartialFiles,
        *,
        seeks: bool,
        new: bool = False,
        boundary: MountBoundary | None = None,
        links: LinkTable | None = None,
        attributes: WantedXattrs | None = None,
        live: bool = False,
        earlier: str | None = None,
    ) -> None:
        """`partial_files`: collects partial files of earlier runs. `seeks`: as in TransferContext. `new`: the
        destination does not exist yet. `boundary`: nothing beyond this mount boundary is deleted. `links`,
        `attributes`: `links` and `xattrs` of DirectoryChanges. `live`: as in ExtraneousEntries. `earlier`: as
        in Unarrived."""
        # long because it only makes the parts, in the order in which they need each other
        destination_root, start, options = context.destination_root, context.start, context.options
        filters, events, preserved = context.filters, context.events, context.preserved
        self._destination_root = destination_root
        self._options = options
        self._storage = context.storage
        self._events = events
        if options.remove_source_files:
            events.note_paths(made=options.ignore_existing)
        self.wanted = Manifest()
        self.landing = FileCommits(
            destination_root.root,
            self.wanted,
            events,
            fsync=options.fsync,
            owner=preserved.owner,
            dry=options.dry_run,
            before_writing=context.storage.before_writing,
            xattrs=attributes,
            delays=options.delay_updates,
        )
        self.unarrived = Unarrived(destination_root.root, self.wanted, self.landing, earlier=earlier)
        events.heed(self.unarrived.note)
        if destination_root.root.writes.backups is not None:
            destination_root.root.writes.backups.wanted_known(lambda path: self.wanted.row(path) is not None)
        self.progress = TransferProgress(events)
        transfer = TransferContext(
            destination_root.root,
            self.wanted,
            self.landing,
            partial_files,
            context.secret,
            context.signer,
            events,
            self.progress,
            fsync=options.fsync,
            dry=options.dry_run,
            seeks=seeks and context.uses_content,
            pack=context.pack,
            clones=context.clones,
            leaves_size=options.is_left_for_size,
            alternates=destination_root.alternates,
            whole=options.whole_file or not context.uses_content,
            uses_content=context.uses_content,
        )
        self.router = FileRouter(transfer)
        self.deletion = Deletion(
            destination_root.root,
            filters.protected,
            events,
            limit=options.max_delete,
            share=options.max_delete_share,
            dry=options.dry_run,
            boundary=boundary,
            partial_files=partial_files,
        )
        self.extraneous = ExtraneousEntries(
            destination_root.root,
            options,
            filters.protected,
            self.deletion,
            events,
            given=partial(_named, self.wanted, start, context.selection),
            unarrived=self.unarrived.reason,
            boundary=boundary,
            live=live,
        )
        self._blocked = BlockedEntries(self.extraneous, events)
        self.skipped: SkippedEntries | None = None
        """Entries that options or reserved names leave alone. None if neither links nor xattrs need them."""
        if not (links is None and attributes is None):
            from rdc.session.trees.skipped_entries import SkippedEntries

            self.skipped = SkippedEntries()
        self._applying = ApplyingContext(
            root=destination_root.root,
            new=new,
            start=start,
            options=options,
            filters=filters,
            storage=context.storage,
            manifest=self.wanted,
            landing=self.landing,
            router=self.router,
            extraneous=self.extraneous,
            unarrived=self.unarrived,
            blocked=self._blocked,
            events=events,
            links=links,
            xattrs=attributes,
            alternates=destination_root.alternates,
            skipped=self.skipped,
            has_top=context.has_top,
            selection=context.selection,
            uses_content=context.uses_content,
        )
        self.directories = DirectoryChanges(self._applying)
        self._guarded: GuardedChanges | None = None
        if options.guard is not None:
            from rdc.session.destination.guarded_changes import GuardedChanges

            self._guarded = GuardedChanges(self.directories, options, context.storage)
        self._missing: list[Extraneous] = []
        """What is to go for --delete-missing-args."""
        self._has_removed = False
        """Deletions have begun."""
        self._is_stopped = False
        """The guard stopped the run: nothing is changed."""

    @property
    def compared(self) -> GuardedChanges | DirectoryChanges:
        """What takes the compared directories."""
        return self._guarded or self.directories

    def pass_guard(self, entries: int | None) -> bool:
        """Starts what waited for a guard; False if the guard stops it. `entries`: as in GuardedChanges."""
        why = None if self._guarded is None else self._guarded.stopped(entries)
        if why is not None:
            self._is_stopped = True
            self._events.report(Problem(ExitCode.MAX_DELETE, b"", why))
            self.directories.expect_nothing()
        elif self._guarded is not None:
            self._guarded.release()
        return not self._is_stopped

    def complete(
        self,
        entries: int,
        read_errors: int,
        links: LinkTable | None,
        round_: int,
        fetch: Callable[[int], Conversation[int]],
    ) -> Conversation[int]:
        """After the comparison: renames, fetches the remaining contents, makes hard links, and deletes.

        `entries`, `read_errors`: of the source. `fetch`: fetches and commits what is outstanding. Returns
        the round to go on with.
        """
        self.landing.flush()
        yield from self.router.move(self.deletion.spare, round_)
        round_ = yield from fetch(round_)
        self.landing.land()
        self.directories.finish_alternates()
        hard_links: HardLinks | None = None
        if links:
            from rdc.session.applying.hard_links import HardLinks

            hard_links = HardLinks(self._applying, self.directories.late)
            hard_links.run(links)
            round_ = yield from fetch(round_)
        self.put_blocked(read_errors)
        round_ = yield from fetch(round_)
        if hard_links is not None:
            hard_links.run_late()
            self.put_blocked(read_errors)
            round_ = yield from fetch(round_)
            hard_links.finish()
        self.remove(entries, read_errors)
        return round_

    def find_missing(self) -> None:
        """Notes what --delete-missing-args deletes, when all directories were compared."""
        if self._options.delete_missing_args and not self._is_stopped:
            from rdc.session.applying.missing_arguments import find_missing

            self._missing = find_missing(self._applying, self.deletion)

    def put_blocked(self, read_errors: int) -> None:
        """Lets entries take the places of directories, when everything else is in place. `read_errors`: of
        the source."""
        self._blocked.put_all(partial(self.extraneous.withheld, read_errors))
        self.landing.drop_held()

    def remove(self, entries: int, read_errors: int) -> None:
        """Deletes what has to go, when everything else is in place. `entries`, `read_errors`: of the
        source."""
        self._has_removed = True
        withheld = self.extraneous.withheld(read_errors)
        if self._options.delete:
            self.extraneous.delete(entries, withheld)
        if self._options.delete_missing_args and not self._is_stopped:
            from rdc.session.applying.missing_arguments import delete_missing

            late = self.directories.late
            delete_missing(self._applying, self._missing, self.deletion, late, withheld)
        self.deletion.finish()

    def remove_nevertheless(self, entries: int, read_errors: int) -> None:
        """Deletes, in a run that cannot go on, what --ignore-errors allows, or tells what is withheld."""
        if self._has_removed or self._options.dry_run or not self._options.delete:
            return
        self._has_removed = True
        why = None if self._options.ignore_errors else "not everything arrived before the run ended"
        self.extraneous.delete(entries, self.extraneous.withheld(read_errors) or why)

    def attribute(self, attributes: WantedXattrs, top: Metadata | None, *, adopted: bool) -> None:
        """Sets extended attributes, after all other changes.

        `top`: the root directory's metadata; None if its attributes do not count. `adopted`: all attributes
        were right before this run.
        """
        from rdc.session.applying.set_xattrs import XattrSetter

        within = self.directories.worked_in if adopted else None
        XattrSetter(self._applying, attributes).run(top, within=within)

    def finish(self, round_: int) -> Conversation[int]:
        """After all changes: ends what is kept to be undone, and tells the source what may go there.

        Returns the round to go on with.
        """
        self._storage.finish()
        self._finish_undo()
        options = self._options
        if not options.remove_source_files or options.dry_run or self._is_stopped:
            return round_
        from rdc.session.landing.confirmed_files import ConfirmedFiles

        root = self._destination_root.root
        confirmed = ConfirmedFiles(root, self.wanted, self._storage.preserved, self._events, options)
        return (yield from confirmed.confirm(round_))

    def _finish_undo(self) -> None:
        """Notes that the run came to its end, if it is kept to be undone."""
        undo = self._destination_root.root.writes.undo
        if undo is not None:
            for text in undo.finish():
                self._events.report(Problem(ExitCode.OK, b"", text))

    def wind_down(self) -> None:
        """Ends an interrupted run: commits complete files and leaves partial files for the next run."""
        self._storage.remember()
        self.router.close()
        with contextlib.suppress(RdcError):
            self.landing.flush()
        with contextlib.suppress(RdcError):
            self.directories.finish_alternates()
        self.landing.abandon()

    def finish_turn(self) -> None:
        """After all changes of a turn: remembers what was learned, and reports what failed."""
        self._storage.finish()

    def account(self, code: ExitCode) -> Done:
        """The totals of the run."""
        return Done(
            self.landing.changed,
            self.deletion.deleted,
            self.landing.moved_files,
            self.progress.literal_bytes,
            self.progress.reused_bytes,
            self._events.errors,
            code,
        )


def _named(wanted: Manifest, start: Start, selection: Selection | None) -> int:
    """How many entries of the source the user named, or the directories above them."""
    if selection is None:
        return int(bool(start.only))
    numbers = map(wanted.number, selection.restricted)
    return sum(wanted.end(number) - wanted.firsts[number] for number in numbers if number is not None)
