"""`rdc store verify`: whether every snapshot of a store can be restored, and what is lost if not.

Without `read`, no content is read: every pack's directory, every tree, every key and every base is looked up.
With it, frames are decoded and chunks compared with their keys, packs that were read longest ago first.

Puts, forget and gc may run meanwhile. The snapshots are listed before the packs, so packs of a later put are
not missed, and the lock keeps gc from removing any. One that is forgotten before its turn is left out.
"""

from __future__ import annotations

import time
from array import array
from contextlib import suppress

from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.base.paths import join
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import Record
from rdc.model.entries import strings
from rdc.progress import Problem, Progressed
from rdc.store.directory import KEY_BYTES, split_keys
from rdc.store.notes import read_note, write_note
from rdc.store.place import PackStore, is_gone, typed
from rdc.store.reader import PackFacts, StoreReader
from rdc.store.records import VerifyReport
from rdc.store.snapshot_tree import SnapshotTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.progress import Reporter
    from rdc.store.tree_rows import DirectoryRows, StreamRef

DIGEST = 32


def verify(store: bytes, read: float | None, reporter: Reporter, notes: bytes | None = None) -> VerifyReport:
    """Check a store. `read`: the share of the packs, by bytes, whose contents are read; None: no content is.

    `notes`: the path of a directory for notes on when packs were read; None: none are kept. Damage goes to
    `reporter`, each with the snapshots and paths that it reaches. Raises RdcError if there is no store.
    """
    if read is not None and not 0 < read <= 1:
        raise UsageError(f"verify reads more than 0 and at most all of a store, found {read:g}")
    with PackStore.open(store) as opened:
        opened.hold()
        numbers = opened.numbers()
        reader = StoreReader(opened)
        try:
            return _Verifying(opened, reader, reporter).run(numbers, read, notes)
        finally:
            reader.close()


class _BadFrame(Record):
    """A frame that was read and is not what its pack says."""

    path: bytes
    """The path of the pack."""
    message: str
    keys: tuple[bytes, ...]
    """The keys of the chunks that it lost."""


class _Verifying:
    """One check of a store."""

    def __init__(self, store: PackStore, reader: StoreReader, reporter: Reporter) -> None:
        self._store = store
        self._reader = reader
        self._reporter = reporter
        self._lost: set[int] = set()
        """Numbers of frames that cannot be read."""
        self._wrong: set[int] = set()
        """Numbers of chunks with wrong bytes, in frames that can be read."""
        self._whole: set[bytes] = set()
        """Digests of the records of directories all of whose files can be read."""
        self._bad: list[_BadFrame] = []
        self._damaged = 0
        self._frames = self._bytes = 0
        self._done = self._total = 0
        """Stored bytes that were read, and that are to be read."""

    def run(self, numbers: Sequence[int], read: float | None, notes: bytes | None) -> VerifyReport:
        """Check everything. Raises FileError if the store cannot be listed."""
        for error in self._reader.damaged:
            self._report(error.path_bytes, str(error))
        try:
            self._store.check_lock()
        except FileError as error:  # no damage: all snapshots can be restored, and a put says it, too
            self._reporter(Problem(ExitCode.OK, error.path_bytes, str(error)))
        if read is not None:
            self._read_packs(read, notes)
        self._spread()
        before = self._damaged
        checked = sum([self._check_snapshot(number) for number in numbers])
        self._report_frames(needed=self._damaged > before)
        if self._damaged == len(self._reader.damaged):
            self._give_up(self._reader.damaged)
        return VerifyReport(
            snapshots=checked,
            packs=len(self._reader.packs),
            chunks=self._reader.chunks,
            frames_read=self._frames,
            bytes_read=self._bytes,
            damaged=self._damaged,
            exit=ExitCode.PARTIAL if self._damaged else ExitCode.OK,
        )

    def _report(self, path: bytes, message: str) -> None:
        self._damaged += 1
        self._reporter(Problem(ExitCode.PARTIAL, path, message))

    def _give_up(self, errors: Sequence[FileError]) -> None:
        """Say of packs that cannot be read, and that no snapshot lacks, how to get rid of them."""
        for error in errors:
            shown = typed(error.path_bytes)
            text = f"all snapshots can be restored without {shown}, unless forgotten ones; rm -f {shown}"
            self._reporter(Problem(ExitCode.OK, error.path_bytes, f"{text} gives it up"))

    # Contents.

    def _read_packs(self, share: float, notes: bytes | None) -> None:
        packs = self._reader.packs
        times = {} if notes is None else _read_notes(notes, self._store.head.id)
        left = share * sum(pack.size for pack in packs)
        chosen = []
        for pack in sorted(packs, key=lambda pack: (times.get(pack.name, 0), pack.name)):
            if left <= 0:
                break
            left -= pack.size
            chosen.append(pack)
        self._total = sum([pack.end.offset for pack in chosen])
        for pack in chosen:
            for number in range(pack.first_frame, pack.first_frame + pack.frames):
                self._read_frame(number)
            times[pack.name] = int(time.time())
        if notes is not None:
            _write_notes(notes, self._store.head.id, times, packs)

    def _read_frame(self, number: int) -> None:
        frame = self._reader.frame(number)
        self._done += frame.stored
        self._reporter(Progressed("compare", self._done, self._total))
        directory = self._reader.directory(frame.pack)
        own = number - frame.pack.first_frame
        keys = directory.keys_of(own)
        if self._reader.is_lost(number) or not all(map(self._is_there, split_keys(frame.bases))):
            return  # reported where it was found; _spread says what it reaches
        try:
            content = self._reader.content(number)
        except FileError as error:
            self._lost.add(number)
            self._bad.append(_BadFrame(frame.pack.path, str(error), tuple(keys)))
            return
        self._frames += 1
        self._bytes += len(content)
        lengths = directory.lengths[directory.first_chunks[own] : directory.first_chunks[own + 1]]
        digests = name_parts(content, array("Q", lengths), self._store.head.key)
        wrong = [at for at, key in enumerate(keys) if digests[DIGEST * at : DIGEST * at + KEY_BYTES] != key]
        if wrong:
            if frame.bases:
                self._lost.add(number)
            else:
                first = frame.pack.first_chunk + directory.first_chunks[own]
                self._wrong.update([first + at for at in wrong])
            text = (
                f"{printable(frame.pack.path)}: damaged: {len(wrong)} of {len(keys)} chunks of the frame at"
                f" byte {frame.offset} have other content than their keys say"
            )
            lost = keys if frame.bases else [keys[at] for at in wrong]
            self._bad.append(_BadFrame(frame.pack.path, text, tuple(lost)))

    def _report_frames(self, *, needed: bool) -> None:
        """Report the bad frames. After `put --heal`, other packs have what was in them, or only forgotten
        snapshots need it. `needed`: a snapshot has lost something."""
        for bad in self._bad:
            if all(map(self._is_there, bad.keys)):
                why = "other packs have them, so nothing is lost"
            elif not needed:
                why = "no snapshot needs them, unless forgotten ones"
            else:
                self._report(bad.path, bad.message)
                continue
            self._reporter(Problem(ExitCode.OK, bad.path, f"{bad.message}; {why}"))

    def _is_there(self, key: bytes) -> bool:
        """Return whether a chunk can be read, from any pack."""
        return any(
            frame not in self._lost and chunk not in self._wrong
            for chunk, frame in self._reader.sound_places(key)
        )

    def _spread(self) -> None:
        """Note deltas whose bases are missing or bad as lost: lower frames come first."""
        for number in self._reader.deltas():
            if number in self._lost:
                continue
            bases = split_keys(self._reader.frame(number).bases)
            if not all(map(self._is_there, bases)):
                self._lost.add(number)
                continue
            try:
                self._reader.needed(number)
            except FileError as error:
                self._lost.add(number)
                self._report(self._reader.frame(number).pack.path, str(error))

    # Snapshots.

    def _check_snapshot(self, number: int) -> bool:
        """Report what is lost of a snapshot. Return False if it was forgotten meanwhile."""
        try:
            snapshot = self._store.snapshot(number)
            tree = SnapshotTree(self._reader, snapshot)
        except FileError as error:
            if is_gone(error):
                return False
            self._report(error.path_bytes, f"snapshot {number}: its tree cannot be read: {error}")
            return True
        for path in tree:
            try:
                rows = tree.rows(path)
            except FileError as error:
                self._report(path, f"snapshot {number}: {printable(path or b'.')}: {error}")
                continue
            if rows is None:
                continue
            self._check_rows(number, path, rows, tree)
        return True

    def _why_lost(self, ref: StreamRef) -> str | None:
        """Return why a stream cannot be read; None if it can."""
        lost = count = size = 0
        try:
            for part in self._reader.key_parts(ref):
                gone = sum([not self._is_there(key) for key in split_keys(part)])
                lost, count = lost + gone, count + len(part) // KEY_BYTES
                size += 0 if gone else sum(self._reader.lengths(part))
        except FileError as error:
            return str(error)
        if lost:
            return f"{lost} of {count} chunks are lost"
        return None if size == ref.size else "it has another length"

    def _check_rows(self, number: int, path: bytes, rows: DirectoryRows, tree: SnapshotTree) -> None:
        """Report the files of a directory that cannot be restored. An equal directory is looked at once."""
        digest = tree.digest(path)
        if digest in self._whole:
            return
        names, found = strings(rows.listing.names), False
        for row, place in rows.file_numbers().items():
            ref = rows.files[place].content
            why = self._why_lost(ref)
            if why is None:
                continue
            found = True
            entry = join(path, names[row])
            self._report(entry, f"snapshot {number}: {printable(entry)}: cannot be restored: {why}")
        if not found:
            self._whole.add(digest)


# Notes on when each pack was read: a line with its name and the time. They decide the order of reading.


def _note_name(store: bytes) -> bytes:
    return b"store-" + store.hex().encode() + b".read"


def _read_notes(directory: bytes, store: bytes) -> dict[bytes, int]:
    times: dict[bytes, int] = {}
    with suppress(ValueError):
        for line in read_note(directory, _note_name(store)).decode("ascii").splitlines():
            name, _, seconds = line.partition(" ")
            times[bytes.fromhex(name)] = int(seconds)
    return times


def _write_notes(
    directory: bytes, store: bytes, times: dict[bytes, int], packs: tuple[PackFacts, ...]
) -> None:
    lines = [f"{pack.name.hex()} {times[pack.name]}\n" for pack in packs if pack.name in times]
    write_note(directory, _note_name(store), "".join(lines).encode())
