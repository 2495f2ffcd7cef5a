"""Linker: replaces the names of identical files by hard links to one of them, in batches that share their
syncs.

A batch goes through five steps. Files are leased, compared and written into the journal. The journal and the
originals are made durable. Names are exchanged. The directories are made durable. The displaced files are
removed. rdc.files.names.hard_link has the argument for each name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from rdc.errors import FileError, printable
from rdc.files.base.descriptor_limit import share_of_descriptors
from rdc.files.base.os_errors import changed
from rdc.files.facts.shared_space import measure_sharing
from rdc.files.names.hard_link import LinkSwap, sync_contents, sync_names
from rdc.files.names.leased_file import LeasedFile, difference, same_bytes
from rdc.instances.group import by_volume, choose_original
from rdc.instances.journal import LinkRecord
from rdc.model.instances import Action, Instance
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.group import Inode
    from rdc.instances.journal import Journal
    from rdc.instances.run_totals import RunTotals
    from rdc.instances.tree import Tree
    from rdc.model.instances import RootedPath

__all__ = ["BATCH_BYTES", "BATCH_NAMES", "Linker", "freed_bytes"]

BATCH_NAMES = 64
"""Names per batch. The three waits for the disk are then a small part of the work, and the open files are
few: two descriptors per name at most. Fewer if the limit of descriptors is low."""

BATCH_BYTES = 64 << 20
"""Bytes compared in one batch, or one file of any size. This takes a tenth of a second from memory, a second
from a disk. Meanwhile, programs that open one of its files for writing wait."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One inode whose names all become links to another file."""

    original: Inode
    old: Inode


@dataclass(slots=True)
class _Ready:
    """A task whose files are leased and were found equal."""

    task: _Task
    original: LeasedFile
    old: LeasedFile
    swaps: list[LinkSwap]
    won: int


class Linker:
    """Makes hard links. In a dry run it only computes what they would free."""

    def __init__(self, trees: Sequence[Tree], totals: RunTotals, journal: Journal | None) -> None:
        """`journal`: required if the options of `totals` say `apply`."""
        self._trees = trees
        self._totals = totals
        self._journal = journal
        self._most_names = share_of_descriptors(BATCH_NAMES)
        self._batch: list[_Task] = []
        self._batch_names = 0
        self._batch_bytes = 0

    def group(self, inodes: Sequence[Inode]) -> None:
        """Links the names of one group's files to one of them, where owner, mode, mtime and attributes are
        equal."""
        for part in by_volume(inodes, lambda inode: b"%d" % inode.facts.identity.device):
            alike: dict[object, list[Inode]] = {}
            for inode in part:
                alike.setdefault((inode.facts.metadata, inode.facts.attributes), []).append(inode)
            for members in alike.values():
                self._alike(members)
            self._report_differences(list(alike.values()))

    def flush(self) -> None:
        """Executes the batch."""
        tasks, self._batch, self._batch_names, self._batch_bytes = self._batch, [], 0, 0
        if not tasks:
            return
        with ExitStack() as leases:
            ready = list(self._prepare(tasks, leases))
            if not self._totals.options.apply:
                for one in ready:
                    self._done(one)
            elif ready:
                self._record(ready)
                self._carry_out(ready)
        for task in tasks:
            self._totals.advance(task.old.facts.identity.size)

    # Choosing

    def _alike(self, members: Sequence[Inode]) -> None:
        original = choose_original(members)
        added = False
        for inode in members:
            if inode is original or inode.protected:
                continue
            size = inode.facts.identity.size
            if inode.has_other_names:
                self._skip(inode, "has names outside of what was given, so that a link would free nothing")
            elif len(inode.names) > inode.facts.links:
                self._skip(inode, "is reached by several paths, as through a bind mount")
            elif not self._totals.capped and self._totals.take(size):
                added = True
                self._add(_Task(original, inode))
        self._totals.groups += added

    def _report_differences(self, classes: Sequence[Sequence[Inode]]) -> None:
        """Reports files of identical content that cannot be linked, because a link has one owner, mode and
        mtime."""
        first = classes[0][0]
        for members in classes[1:]:
            what = _different(first, members[0])
            other = printable(self._shown(first.names[0]))
            # The other files of this class become links to this one.
            inode = choose_original(members)
            if not inode.protected:
                self._skip(inode, f"has another {what} than {other}, which a link would lose")

    def _skip(self, inode: Inode, why: str) -> None:
        shown = self._shown(inode.names[0])
        self._totals.skip(shown, f"{printable(shown)}: skipped: {why}")

    def _add(self, task: _Task) -> None:
        self._batch.append(task)
        self._batch_names += len(task.old.names)
        self._batch_bytes += task.old.facts.identity.size
        if self._batch_names >= self._most_names or self._batch_bytes >= BATCH_BYTES:
            self.flush()

    # Step 1: hold and compare

    def _prepare(self, tasks: Iterable[_Task], leases: ExitStack) -> Iterator[_Ready]:
        original: LeasedFile | None = None
        original_inode: Inode | None = None
        failed: Inode | None = None
        for task in tasks:
            if task.original is failed:
                continue  # its failure was reported once
            try:
                if original is None or original_inode is not task.original:
                    failed = task.original
                    original = leases.enter_context(self._lease(task.original))
                    original_inode, failed = task.original, None
                old = leases.enter_context(self._lease(task.old))
                self._compare(original, old)
                won = freed_bytes(original, old)
            except FileError as error:
                self._totals.problem(error)
                continue
            swaps = []
            if self._totals.options.apply:
                try:
                    swaps = [
                        LinkSwap(self._trees[name.root].root, name.path, old, original)
                        for name in task.old.names
                    ]
                except FileError as error:
                    self._totals.problem(error)
                    continue
            yield _Ready(task, original, old, swaps, won)

    def _lease(self, inode: Inode) -> LeasedFile:
        location = inode.names[0]
        file = LeasedFile(self._trees[location.root].root, location.path)
        expected = inode.facts.identity
        if (file.identity.device, file.identity.inode) != (expected.device, expected.inode):
            file.close()
            shown = self._shown(location)
            raise changed(location.path, shown, "the file that was there", "another one")
        return file

    def _compare(self, original: LeasedFile, old: LeasedFile) -> None:
        shown = old.root.shown(old.path)
        what = difference(original, old)
        if what is not None:
            raise changed(old.path, shown, f"the {what} of its duplicate", "another")
        options = self._totals.options
        if (options.apply or not options.searched) and not same_bytes(original, old):
            raise changed(old.path, shown, "the content of its duplicate", "another")

    # Step 2: the journal, and what will stand for two

    def _record(self, ready: Sequence[_Ready]) -> None:
        """Writes the journal and syncs the originals. Raises RdcError; nothing has been changed then."""
        if self._journal is None:
            raise ValueError("hard links are made with a journal only")
        self._journal.write(
            LinkRecord(
                top=self._trees[name.root].real,
                path=name.path,
                original=self._real(one.task.original.names[0]),
                inode=one.original.identity.inode,
                size=one.original.identity.size,
                mtime_ns=one.original.identity.mtime_ns,
                old=one.old.identity.inode,
                mode=one.old.metadata.mode,
                uid=one.old.metadata.uid,
                gid=one.old.metadata.gid,
            )
            for one in ready
            for name in one.task.old.names
        )
        original = {id(one.original): one.original for one in ready}
        try:
            sync_contents(list(original.values()))
        except OSError as error:
            first = ready[0].original
            raise first.root.failure(error, first.path, "write it to disk before others go") from error

    # Steps 3 to 5: exchange, make durable, discard

    def _carry_out(self, ready: Sequence[_Ready]) -> None:
        exchanged: list[tuple[_Ready, LinkSwap]] = []
        try:
            for one in ready:
                for swap in one.swaps:
                    if self._try(swap, exchange=True):
                        exchanged.append((one, swap))
            if exchanged:
                first = exchanged[0][1]
                try:
                    sync_names([swap for _, swap in exchanged])
                except OSError as error:
                    raise first.root.failure(error, first.path, "make its new name durable") from error
            remaining = {id(one): len(one.swaps) for one in ready}
            while exchanged:
                one, swap = exchanged.pop()
                if self._try(swap, exchange=False):
                    remaining[id(one)] -= 1
                    if not remaining[id(one)]:
                        self._done(one)
        finally:
            # Reached only after a disk failure or a signal.
            for _, swap in exchanged:
                swap.undo()

    def _try(self, swap: LinkSwap, *, exchange: bool) -> bool:
        try:
            if exchange:
                swap.link()
                swap.exchange()
            else:
                swap.discard()
        except FileError as error:
            self._totals.problem(error)
            return False
        return True

    def _done(self, one: _Ready) -> None:
        source = self._shown(one.task.original.names[0])
        size = one.old.identity.size
        for at, name in enumerate(one.task.old.names):
            last = at == len(one.task.old.names) - 1
            # Only the last name frees the file.
            instance = Instance(
                Action.LINK, self._shown(name), source, size if last else 0, one.won if last else 0, 0
            )
            self._totals.done(instance, files=int(last))

    def _shown(self, location: RootedPath) -> bytes:
        return self._trees[location.root].root.shown(location.path)

    def _real(self, location: RootedPath) -> bytes:
        return self._trees[location.root].real_path(location.path)


def freed_bytes(original: LeasedFile, old: LeasedFile) -> int:
    """Bytes that removing the old file frees: its blocks without those it shares with other files."""
    try:
        sharing = measure_sharing(
            original.fileno(), 0, old.fileno(), 0, max(old.identity.size, old.allocated), whole_extents=False
        )
    except OSError:
        return old.allocated
    return sharing.own


def _different(one: Inode, other: Inode) -> str:
    for what, name in (("mode", "mode"), ("uid", "owner"), ("gid", "group"), ("mtime_ns", "mtime")):
        if getattr(one.facts.metadata, what) != getattr(other.facts.metadata, what):
            return name
    return "extended attribute"
