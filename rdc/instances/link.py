"""Hard links: names of a group's files become names of one of them, in batches that share their syncs.

A batch: files are held, compared, written into the journal; the journal and the kept files are made durable;
names are exchanged; the directories are made durable; the displaced files are discarded. rdc.files.hard_link
has the argument for each name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from rdc.errors import FileError, printable
from rdc.files.descriptors import share_of_descriptors
from rdc.files.failure import changed
from rdc.files.hard_link import LinkSwap, sync_contents, sync_names
from rdc.files.held import HeldFile, difference, same_bytes
from rdc.files.places import compare_places
from rdc.instances.group import by_volume, choose_kept
from rdc.instances.journal import LinkRecord
from rdc.model.instances import Action, Instance
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.instances.group import Inode
    from rdc.instances.journal import Journal
    from rdc.instances.tally import Tally
    from rdc.instances.tree import Tree
    from rdc.model.instances import Place

__all__ = ["BATCH_BYTES", "BATCH_NAMES", "Linker"]

BATCH_NAMES = 64
"""Names of one batch: its three waits for the disk are then a small part of the work, and the files it holds,
two descriptors a name at worst, are few. Fewer where the limit of descriptors is low."""

BATCH_BYTES = 64 << 20
"""Bytes compared in one batch, or one file of any size: a tenth of a second from memory, a second from a
disk, in which whoever wants to write to one of its files waits."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One inode of which all names shall go to another file."""

    kept: Inode
    old: Inode


@dataclass(slots=True)
class _Ready:
    """A task whose files are held and were found equal."""

    task: _Task
    kept: HeldFile
    old: HeldFile
    swaps: list[LinkSwap]
    won: int


class Linker:
    """Makes hard links, or in a dry run finds out what that would win."""

    def __init__(self, trees: Sequence[Tree], tally: Tally, journal: Journal | None) -> None:
        """`journal`: needed when the tally's options say `apply`."""
        self._trees = trees
        self._tally = tally
        self._journal = journal
        self._most_names = share_of_descriptors(BATCH_NAMES)
        self._batch: list[_Task] = []
        self._batch_names = 0
        self._batch_bytes = 0

    def group(self, inodes: Sequence[Inode]) -> None:
        """Let the names of one group's files become names of one of them, where nothing but that differs."""
        for part in by_volume(inodes, lambda inode: b"%d" % inode.facts.identity.device):
            alike: dict[object, list[Inode]] = {}
            for inode in part:
                alike.setdefault((inode.facts.metadata, inode.facts.attributes), []).append(inode)
            for members in alike.values():
                self._alike(members)
            self._tell_differences(list(alike.values()))

    def flush(self) -> None:
        """Do what is gathered."""
        tasks, self._batch, self._batch_names, self._batch_bytes = self._batch, [], 0, 0
        if not tasks:
            return
        with ExitStack() as held:
            ready = list(self._prepare(tasks, held))
            if not self._tally.options.apply:
                for one in ready:
                    self._done(one)
            elif ready:
                self._write_down(ready)
                self._carry_out(ready)
        for task in tasks:
            self._tally.advance(task.old.facts.identity.size)

    # Choosing

    def _alike(self, members: Sequence[Inode]) -> None:
        kept = choose_kept(members)
        added = False
        for inode in members:
            if inode is kept or inode.protected:
                continue
            size = inode.facts.identity.size
            if inode.has_other_names:
                self._skip(inode, "has names outside of what was given, so that a link would free nothing")
            elif len(inode.names) > inode.facts.links:
                self._skip(inode, "is reached by several paths, as through a bind mount")
            elif not self._tally.capped and self._tally.take(size):
                added = True
                self._add(_Task(kept, inode))
        self._tally.groups += added

    def _tell_differences(self, classes: Sequence[Sequence[Inode]]) -> None:
        """Identical content that cannot be linked, because a link has one owner, mode and time."""
        first = classes[0][0]
        for members in classes[1:]:
            what = _different(first, members[0])
            other = printable(self._shown(first.names[0]))
            # The others of its kind become links to this one.
            inode = choose_kept(members)
            if not inode.protected:
                self._skip(inode, f"has another {what} than {other}, which a link would lose")

    def _skip(self, inode: Inode, why: str) -> None:
        shown = self._shown(inode.names[0])
        self._tally.skip(shown, f"{printable(shown)}: skipped: {why}")

    def _add(self, task: _Task) -> None:
        self._batch.append(task)
        self._batch_names += len(task.old.names)
        self._batch_bytes += task.old.facts.identity.size
        if self._batch_names >= self._most_names or self._batch_bytes >= BATCH_BYTES:
            self.flush()

    # Step 1: hold and compare

    def _prepare(self, tasks: Iterable[_Task], held: ExitStack) -> Iterator[_Ready]:
        kept: HeldFile | None = None
        kept_of: Inode | None = None
        failed: Inode | None = None
        for task in tasks:
            if task.kept is failed:
                continue  # told once, whatever number of files it concerns
            try:
                if kept is None or kept_of is not task.kept:
                    failed = task.kept
                    kept = held.enter_context(self._hold(task.kept))
                    kept_of, failed = task.kept, None
                old = held.enter_context(self._hold(task.old))
                self._compare(kept, old)
                won = _win(kept, old)
            except FileError as error:
                self._tally.problem(error)
                continue
            swaps = []
            if self._tally.options.apply:
                try:
                    swaps = [
                        LinkSwap(self._trees[name.root].root, name.path, old, kept) for name in task.old.names
                    ]
                except FileError as error:
                    self._tally.problem(error)
                    continue
            yield _Ready(task, kept, old, swaps, won)

    def _hold(self, inode: Inode) -> HeldFile:
        place = inode.names[0]
        file = HeldFile(self._trees[place.root].root, place.path)
        expected = inode.facts.identity
        if (file.identity.device, file.identity.inode) != (expected.device, expected.inode):
            file.close()
            shown = self._shown(place)
            raise changed(place.path, shown, "the file that was there", "another one")
        return file

    def _compare(self, kept: HeldFile, old: HeldFile) -> None:
        shown = old.root.shown(old.path)
        what = difference(kept, old)
        if what is not None:
            raise changed(old.path, shown, f"the {what} of its duplicate", "another")
        options = self._tally.options
        if (options.apply or not options.searched) and not same_bytes(kept, old):
            raise changed(old.path, shown, "the content of its duplicate", "another")

    # Step 2: the journal, and what will stand for two

    def _write_down(self, ready: Sequence[_Ready]) -> None:
        """Raises RdcError: then nothing has been done."""
        if self._journal is None:
            raise ValueError("hard links are made with a journal only")
        self._journal.write(
            LinkRecord(
                top=self._trees[name.root].real,
                path=name.path,
                kept=self._real(one.task.kept.names[0]),
                inode=one.kept.identity.inode,
                size=one.kept.identity.size,
                mtime_ns=one.kept.identity.mtime_ns,
            )
            for one in ready
            for name in one.task.old.names
        )
        kept = {id(one.kept): one.kept for one in ready}
        try:
            sync_contents(list(kept.values()))
        except OSError as error:
            first = ready[0].kept
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
            # Only after a failure of the disk, or a signal.
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
            self._tally.problem(error)
            return False
        return True

    def _done(self, one: _Ready) -> None:
        source = self._shown(one.task.kept.names[0])
        size = one.old.identity.size
        for at, name in enumerate(one.task.old.names):
            last = at == len(one.task.old.names) - 1
            # Only the last name frees the file.
            instance = Instance(
                Action.LINK, self._shown(name), source, size if last else 0, one.won if last else 0, 0
            )
            self._tally.done(instance, files=int(last))

    def _shown(self, place: Place) -> bytes:
        return self._trees[place.root].root.shown(place.path)

    def _real(self, place: Place) -> bytes:
        return self._trees[place.root].real_path(place.path)


def _win(kept: HeldFile, old: HeldFile) -> int:
    """Bytes that the old file's blocks give back: not those it shares with others already."""
    try:
        places = compare_places(
            kept.fileno(), 0, old.fileno(), 0, max(old.identity.size, old.allocated), whole_extents=False
        )
    except OSError:
        return old.allocated
    return places.own


def _different(one: Inode, other: Inode) -> str:
    for what, name in (("mode", "mode"), ("uid", "owner"), ("gid", "group"), ("mtime_ns", "mtime")):
        if getattr(one.facts.metadata, what) != getattr(other.facts.metadata, what):
            return name
    return "extended attribute"
