"""`rdc store verify`: whether every snapshot of a store can be restored, and what is lost if not.

Without `read`, no content is read: every pack's directory, every tree, every key and every base is looked up.
With it, frames are decoded and chunks compared with their keys, packs that were read longest ago first.
"""

from __future__ import annotations

import os
import time
from array import array
from contextlib import suppress

from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.base.paths import join
from rdc.kernel.blake3_many import name_parts
from rdc.model.entries import strings
from rdc.progress import Problem, Progressed
from rdc.store.directory import KEY_BYTES
from rdc.store.place import PackStore
from rdc.store.reader import FrameFacts, StoreReader
from rdc.store.records import VerifyReport
from rdc.store.snapshot_tree import SnapshotTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Reporter
    from rdc.store.pack_file import OpenPack
    from rdc.store.tree_rows import DirectoryRows

DIGEST = 32

NOTES_BYTES = 16 << 20
"""Most bytes of the notes on when packs were read."""


def verify(store: bytes, read: float | None, reporter: Reporter, notes: bytes | None = None) -> VerifyReport:
    """Check a store. `read`: the share of the packs, by bytes, whose contents are read; None: no content is.

    `notes`: the path of a directory for notes on when packs were read; None: none are kept. Damage goes to
    `reporter`, each with the snapshots and paths that it reaches. Raises RdcError if there is no store.
    """
    if read is not None and not 0 < read <= 1:
        raise UsageError(f"verify reads more than 0 and at most all of a store, found {read:g}")
    with PackStore.open(store) as opened:
        reader = StoreReader(opened)
        try:
            return _Verifying(opened, reader, reporter).run(read, notes)
        finally:
            reader.close()


class _Verifying:
    """One check of a store."""

    def __init__(self, store: PackStore, reader: StoreReader, reporter: Reporter) -> None:
        self._store = store
        self._reader = reader
        self._reporter = reporter
        self._bad: set[bytes] = set()
        """Keys of chunks that cannot be read."""
        self._whole: set[bytes] = set()
        """Digests of the records of directories all of whose files can be read."""
        self._damaged = 0
        self._frames = self._bytes = 0

    def run(self, read: float | None, notes: bytes | None) -> VerifyReport:
        """Check everything. Raises FileError if the store cannot be listed."""
        for error in self._reader.damaged:
            self._report(error.path, str(error))
        if read is not None:
            self._read_packs(read, notes)
        self._spread()
        numbers = self._store.numbers()
        for number in numbers:
            self._check_snapshot(number)
        return VerifyReport(
            snapshots=len(numbers),
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

    # Contents.

    def _read_packs(self, share: float, notes: bytes | None) -> None:
        packs = self._reader.packs
        times = {} if notes is None else _read_notes(notes, self._store.head.id)
        left = share * sum(pack.size for pack in packs)
        by_pack: dict[bytes, list[tuple[int, FrameFacts]]] = {}
        for number, frame in enumerate(self._reader.frames):
            by_pack.setdefault(frame.pack.name, []).append((number, frame))
        for pack in sorted(packs, key=lambda pack: (times.get(pack.name, 0), pack.name)):
            if left <= 0:
                break
            left -= pack.size
            for number, frame in by_pack.get(pack.name, []):
                self._read_frame(number, frame)
            times[pack.name] = int(time.time())
        if notes is not None:
            _write_notes(notes, self._store.head.id, times, packs)

    def _read_frame(self, number: int, frame: FrameFacts) -> None:
        keys, lengths = self._reader.chunks_of(frame)
        try:
            content = self._reader.content(number)
        except FileError as error:
            self._bad.update(keys)
            self._report(frame.pack.path, str(error))
            return
        self._frames += 1
        self._bytes += len(content)
        self._reporter(Progressed("compare", self._bytes, None))
        digests = name_parts(content, array("Q", lengths), self._store.head.key)
        wrong = [key for at, key in enumerate(keys) if digests[DIGEST * at : DIGEST * at + KEY_BYTES] != key]
        if wrong:
            self._bad.update(wrong)
            shown = printable(frame.pack.path)
            self._report(
                frame.pack.path,
                f"{shown}: damaged: {len(wrong)} of {len(keys)} chunks of the frame at byte {frame.offset}"
                " have other content than their keys say",
            )

    def _spread(self) -> None:
        """Note the chunks of deltas whose bases are missing or bad: lower frames come first."""
        for number, frame in sorted(enumerate(self._reader.frames), key=lambda one: one[1].depth):
            bases = [frame.bases[at : at + KEY_BYTES] for at in range(0, len(frame.bases), KEY_BYTES)]
            if not bases:
                continue
            if any(key in self._bad or key not in self._reader for key in bases):
                self._bad.update(self._reader.chunks_of(frame)[0])
                continue
            try:
                self._reader.check_bases(number)
            except FileError as error:
                self._bad.update(self._reader.chunks_of(frame)[0])
                self._report(frame.pack.path, str(error))

    # Snapshots.

    def _check_snapshot(self, number: int) -> None:
        try:
            snapshot = self._store.snapshot(number)
            tree = SnapshotTree(self._reader, snapshot)
        except FileError as error:
            self._report(error.path, f"snapshot {number}: its tree cannot be read: {error}")
            return
        for path in tree:
            try:
                rows = tree.rows(path)
            except FileError as error:
                self._report(path, f"snapshot {number}: {printable(path or b'.')}: {error}")
                continue
            if rows is None:
                continue
            self._check_rows(number, path, rows, tree)

    def _check_rows(self, number: int, path: bytes, rows: DirectoryRows, tree: SnapshotTree) -> None:
        """Report the files of a directory that cannot be restored. An equal directory is looked at once."""
        digest = tree.digest(path)
        if digest in self._whole:
            return
        names, found = strings(rows.listing.names), False
        for row, place in rows.file_numbers().items():
            ref = rows.files[place].content
            try:
                keys = self._reader.expand(ref)
            except FileError as error:
                why = str(error)
            else:
                parts = [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]
                lost = [key for key in parts if key in self._bad or key not in self._reader]
                if not lost and sum(map(self._reader.length, parts)) == ref.size:
                    continue
                why = f"{len(lost)} of {len(parts)} chunks are lost" if lost else "it has another length"
            found = True
            entry = join(path, names[row])
            self._report(entry, f"snapshot {number}: {printable(entry)}: cannot be restored: {why}")
        if not found:
            self._whole.add(digest)


# Notes on when each pack was read: a line with its name and the time. They lie in the user's cache and decide
# nothing but the order in which packs are read.


def _notes_path(directory: bytes, store: bytes) -> bytes:
    return os.path.join(directory, b"store-" + store.hex().encode() + b".read")


def _read_notes(directory: bytes, store: bytes) -> dict[bytes, int]:
    times: dict[bytes, int] = {}
    with suppress(OSError, ValueError), open(_notes_path(directory, store), encoding="ascii") as file:
        for line in file.read(NOTES_BYTES).splitlines():
            name, _, seconds = line.partition(" ")
            times[bytes.fromhex(name)] = int(seconds)
    return times


def _write_notes(
    directory: bytes, store: bytes, times: dict[bytes, int], packs: tuple[OpenPack, ...]
) -> None:
    path = _notes_path(directory, store)
    lines = [f"{pack.name.hex()} {times[pack.name]}\n" for pack in packs if pack.name in times]
    with suppress(OSError):  # without notes, other packs are read next time
        os.makedirs(directory, 0o700, exist_ok=True)
        aside = path + b".new"
        with open(aside, "w", encoding="ascii") as file:
            file.writelines(lines)
        os.replace(aside, path)
