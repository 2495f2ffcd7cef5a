"""Where contents land: the commit group, the metadata that goes with them, the account of what changed."""

from __future__ import annotations

from array import array
from contextlib import suppress

from rdc.errors import FileError, RdcError
from rdc.files.commit import CommitGroup
from rdc.files.small import NewVersions
from rdc.kernel import put_rows, take_rows
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Decision, Difference
from rdc.plan.itemize import RENAMING, itemize
from rdc.progress import ItemChanged, Problem
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.confined import Root
    from rdc.files.opened import OpenedFiles
    from rdc.files.replacement import Replacement
    from rdc.model.entries import Identity, Metadata, PackedListing
    from rdc.session.news import News
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.manifest import Manifest

__all__ = ["Landing"]

NEW_FILE = itemize(Kind.FILE, Decision(Change.CREATE, -1, -1, Difference.NONE), transferred=True, new=True)
"""The code of most files of most first copies."""

DIFFERENCES = tuple(map(Difference, range(1 << len(Difference))))
"""Every set of differences, by its bits."""


_DIFFERS = bytes(code > 0 and (code - 1) % len(DIFFERENCES) > 0 for code in range(256))
"""Whether a decision's byte says that metadata differ."""


class Landing:
    """Takes verified files and reports each once it is durable. Not durable yet: at most a commit group."""

    def __init__(
        self, root: Root, entries: Manifest, news: News, *, fsync: bool, owner: bool, dry: bool
    ) -> None:
        self._root = root
        self._entries = entries
        self._news = news
        self._owner = owner
        self._dry = dry
        self._decisions = _Decisions()
        self._landing: dict[bytes, int] = {}
        self._otherwise: dict[int, tuple[int, int]] = {}
        """See `landed`."""
        # What lands is not put into the catalog: a whole file is neither cut nor are its chunks named on its
        # way, which would take four times as long as its digest; most files are never asked about.
        self._group = CommitGroup(root, fsync=fsync, on_commit=self._committed, on_error=self._failed)
        self.changed = 0
        self.planned = 0
        self.attributes: WantedAttributes | None = None
        """Where extended attributes are kept: is told which files differ."""
        self.further: Callable[[int], Iterator[bytes]] | None = None
        """Paths of the names that a file is going to have besides its own. None: none, or not known yet."""
        self._copied: set[bytes] = set()
        """Paths on their way whose content was here."""

    def decide(self, file: int, decision: Decision) -> None:
        """Counts a file to be fetched, and remembers for the report how it differs from what is there."""
        self.planned += 1
        if decision.change is not Change.CREATE:
            self._decisions.put(file, decision.change, decision.difference)

    def decide_many(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """The same for increasing ones that differ alike."""
        self.planned += len(files)
        self._decisions.put_many(files, change, difference)

    def rehearse(self, file: int) -> None:
        """A dry run's report of a file that would be fetched."""
        self._account(self._entries.entry(file).path, self._decisions.pop(file))

    def differs(self, file: int) -> bool:
        """The comparison of contents found a difference that the quick check had not. True when the new
        content is to be fetched, False in a dry run, which has reported the file."""
        old = self._decisions.pop(file)
        difference = Difference.NONE if old is None else old.difference
        self._decisions.put(file, Change.CONTENT, difference | Difference.CHECKSUM)
        if self.attributes is not None:
            self.attributes.note_told((file,))
        if self._dry:
            self.rehearse(file)
        return not self._dry

    def same(self, file: int, metadata: Metadata | None, held: Identity) -> None:
        """The content is the wanted one already, as it was when the file was `held`; `metadata` in place of
        the listed one where given."""
        decision = self._decisions.pop(file)
        if decision is None or not decision.difference:
            return
        entry = self._entries.entry(file)
        wanted = entry.metadata if metadata is None else metadata
        self._note_landed(file, held.size, wanted)
        if decision.change is Change.CONTENT and not self._dry and self._stays_elsewhere(file, entry.path):
            self._part(file, entry.path, wanted, decision, held)
        else:
            self.settle(entry.path, wanted, decision, lambda now: now == held)

    def _stays_elsewhere(self, file: int, path: bytes) -> bool:
        """Whether the file here has names that this run does not make the source's file: another mtime would
        be one for them, too. What the quick check took for another file is made one, as rsync does; with
        --checksum the user has said that content alone decides."""
        try:
            names = self._root.link_count(path)
            if names < 2:
                return False
            held = self._root.identity(path)
        except FileError:
            return False  # whoever opens it says why
        for further in self.further(file) if self.further is not None else ():
            with suppress(FileError):
                found = self._root.identity(further)
                names -= (found.device, found.inode) == (held.device, held.inode)
        return names > 1

    def _part(self, file: int, path: bytes, metadata: Metadata, decision: Decision, held: Identity) -> None:
        self._decisions.put(file, decision.change, decision.difference)
        self._landing[path] = file
        self._copied.add(path)
        try:
            self._group.part(path, metadata, self._owner, held)
        except FileError as error:
            self._failed(error)

    def _note_landed(self, file: int, size: int, metadata: Metadata) -> None:
        entry = self._entries.entry(file)
        if (size, metadata.mtime_ns) != (entry.size, entry.metadata.mtime_ns):
            self._otherwise[file] = (size, metadata.mtime_ns)

    def landed(self, file: int) -> tuple[int, int] | None:
        """Size and mtime of a file whose source was written to after it was listed, and read after that."""
        return self._otherwise.get(file)

    def settle_many(self, files: Sequence[int], opened: OpenedFiles, rows: Sequence[int]) -> list[int]:
        """As `same` for each of these files, which are these rows of `opened` and were read there. Returns
        those that were changed since, of which nothing is said and nothing was done."""
        from rdc.files.opened import CHANGED, SETTLED

        codes = self._decisions.take(files)
        if 0 in codes.translate(_DIFFERS):
            known = [number for number, code in enumerate(codes) if _DIFFERS[code]]
            codes = bytes([codes[number] for number in known])
            files, rows = [files[number] for number in known], [rows[number] for number in known]
        if not files:
            return []
        if self._dry:
            outcomes = bytes([SETTLED]) * len(files)
        else:
            outcomes = opened.settle(rows, files, self._entries, owner=self._owner)
        if outcomes.count(SETTLED) == len(files) and not self._news.lists_items:
            self.changed += len(files)
            return []
        changed = []
        paths = self._entries.paths(files)
        for file, row, path, code, outcome in zip(files, rows, paths, codes, outcomes, strict=True):
            decision = self._decisions.decision(code)
            if outcome == SETTLED:
                self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=False, new=False), path))
                continue
            self._decisions.put(file, decision.change, decision.difference)
            if outcome == CHANGED:
                changed.append(file)
            else:
                # Singly it is done, or fails by name.
                self.same(file, None, opened.identity(row))
        return changed

    def settle(
        self, path: bytes, metadata: Metadata, decision: Decision, is_meant: Callable[[Identity], bool]
    ) -> None:
        """Sets the metadata of a file whose content stays, if what is there now `is_meant`."""
        try:
            if not self._dry:
                self._group.settle(path, metadata, self._owner, is_meant)
        except FileError as error:
            self._failed(error)
            return
        self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=False, new=False), path))

    def is_new(self, file: int) -> bool:
        """Nothing was at its path when the directories were compared."""
        return not self._decisions.has(file)

    def all_new(self, files: Sequence[int]) -> bool:
        """The same for all of some increasing ones."""
        return not self._decisions.has_any(files[0], files[-1] + 1) or all(map(self.is_new, files))

    def commit(
        self, file: int, path: bytes, temporary: Replacement, metadata: Metadata, expected: Identity | None
    ) -> None:
        """Takes over a verified temporary; it replaces exactly what `expected` names (None: nothing)."""
        self._landing[path] = file
        self._note_landed(file, temporary.size, metadata)
        self._group.add(temporary, path, metadata, self._owner, expected)

    def commit_small(self, directory: bytes, listing: PackedListing, content: Buffer) -> list[int]:
        """Takes over verified contents, one after the other, of files of one directory that are all new; the
        rows of which nothing is there, to be tried one by one."""
        return self._group.add_small(directory, listing, content, self._owner)

    def commit_versions(
        self, files: Sequence[int], paths: Sequence[bytes], expected: Sequence[Identity], content: bytes
    ) -> tuple[list[int], list[int]]:
        """Takes over verified contents, one after the other, of these files; each replaces exactly what is
        expected. The rows where something else is by now, and those to be tried one by one: nothing is there
        of either."""
        entries, rows = self._entries, array("Q", files)
        versions = NewVersions(
            paths,
            expected,
            *(
                take_rows(column, width, rows)
                for column, width in (
                    (entries.modes, 2),
                    (entries.sizes, 8),
                    (entries.mtimes, 8),
                    (entries.uids, 4),
                    (entries.gids, 4),
                )
            ),
        )
        self._landing.update(zip(paths, files, strict=True))
        changed, failed = self._group.add_versions(versions, content, self._owner)
        for row in (*changed, *failed):
            self._landing.pop(paths[row], None)
        return changed, failed

    def moved(self, file: int, old: bytes, held: Identity) -> None:
        """A file here, which was `held`, was (in a dry run: would be) renamed to the path of a new one; its
        metadata are still the old ones."""
        self._decisions.pop(file)
        entry = self._entries.entry(file)
        if self.attributes is not None:
            self.attributes.note_moved(file)

        def is_moved(now: Identity) -> bool:
            # The rename gave it another ctime.
            return replace(now, ctime_ns=held.ctime_ns) == held

        try:
            if not self._dry:
                self._group.settle(entry.path, entry.metadata, self._owner, is_moved)
        except FileError as error:
            self._failed(error)
        self.report(ItemChanged(RENAMING, old, entry.path))

    def flush(self) -> None:
        self._group.flush()

    def abandon(self) -> None:
        self._group.abandon()

    def report(self, item: ItemChanged) -> None:
        self.changed += 1
        self._news.report(item)

    def _committed(self, path: bytes) -> None:
        # What is not there was new, and came with many others.
        file = self._landing.pop(path, None)
        copied = path in self._copied
        if copied:
            self._copied.remove(path)
        self._account(path, None if file is None else self._decisions.pop(file), transferred=not copied)

    def _account(self, path: bytes, decision: Decision | None, *, transferred: bool = True) -> None:
        if decision is None:
            self.report(ItemChanged(NEW_FILE, path))
            return
        new = decision.change in (Change.CREATE, Change.REPLACE)
        self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=transferred, new=new), path))

    def _failed(self, error: RdcError) -> None:
        path = error.path if isinstance(error, FileError) else b""
        self._landing.pop(path, None)
        self._copied.discard(path)
        self._news.report(Problem(error.code, path, str(error)))


class _Decisions:
    """How files under way differ from what is there, a byte each: in a tree whose files were all touched they
    are as many as its entries."""

    _CHANGES = (Change.CONTENT, Change.CHECK, Change.REPLACE)

    def __init__(self) -> None:
        # 0: none; else 1 + the difference's bits, and above them which change.
        self._codes = bytearray()
        self._made: dict[int, Decision] = {}

    def put(self, file: int, change: Change, difference: Difference) -> None:
        self.put_many((file,), change, difference)

    def put_many(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """Of increasing files."""
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        code = 1 + int(difference) + len(DIFFERENCES) * self._CHANGES.index(change)
        for file in files:
            self._codes[file] = code

    def has(self, file: int) -> bool:
        return file < len(self._codes) and self._codes[file] != 0

    def has_any(self, first: int, stop: int) -> bool:
        return any(self._codes[first:stop])

    def pop(self, file: int) -> Decision | None:
        """What was put for a file, the once; None for one that was not there."""
        if not self.has(file):
            return None
        code, self._codes[file] = self._codes[file], 0
        return self.decision(code)

    def take(self, files: Sequence[int]) -> bytes:
        """The same for some increasing ones: what `decision` makes one of, a byte each, 0 for none."""
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        rows = array("Q", files)
        codes = take_rows(self._codes, 1, rows)
        put_rows(self._codes, 1, rows, bytes(len(rows)))
        return codes

    def decision(self, code: int) -> Decision:
        """The one that this byte, not 0, stands for."""
        made = self._made.get(code)
        if made is None:
            change, difference = divmod(code - 1, len(DIFFERENCES))
            made = self._made[code] = Decision(self._CHANGES[change], -1, -1, DIFFERENCES[difference])
        return made
