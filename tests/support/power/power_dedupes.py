"""Runs of `rdc dedupe`, recorded for tests/support/power/power_cut.py."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from rdc.duplicates.journal import Change, JournalWriter, read_journal
from rdc.files.names.name_change import is_displaced
from rdc.lean.records import replace
from tests.support.power.power_checks import Scene
from tests.support.power.power_cut import Cut, History, State
from tests.support.power.power_log import Snapshot, snapshot
from tests.support.power.recorded_writes import Call, record
from tests.support.running.deduping import blob, dedupe
from tests.support.trees.trees import File, Tree, read_tree

__all__ = ["clearing", "files_by_number", "journalled", "linking", "undoing", "unsettled"]


def _duplicates(top: Path) -> Path:
    for group in range(3):
        for copy in range(3):
            path = top / ("a" if copy % 2 else "b") / f"group{group}-copy{copy}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob(group, 9_000 + 4096 * group))
            path.chmod(0o640)
            os.utime(path, ns=(1_000 + group, 1_000 + group))
    return top


@dataclass(frozen=True, slots=True)
class _Told:
    """The state of a tree according to a journal, and the file of each inode number."""

    top: Path
    records: list[Change]
    files: dict[int, int]
    """The file, as State.files has it, by inode number."""

    def again(self, state: State, at: Path) -> list[Change]:
        """The same records for `state` at `at`, where the same files have other numbers. A file that is gone
        has number 1."""
        numbers = {
            file: os.lstat(os.path.join(os.fsencode(at), path)).st_ino for path, file in state.files.items()
        }
        return [
            replace(
                record,
                top=os.fsencode(at),
                kept=replace(
                    record.kept,
                    top=os.fsencode(at),
                    inode=numbers.get(self.files.get(record.kept.inode, -1), 1),
                ),
                inode=numbers.get(self.files.get(record.inode, -1), 1),
            )
            for record in self.records
        ]


def files_by_number(top: Path, before: Snapshot) -> dict[int, int]:
    """Return, by inode number at `top`, the file of a history that begins with `before`."""
    found = History(before, []).state(Cut(0, frozenset())).files
    return {os.lstat(os.path.join(os.fsencode(top), path)).st_ino: file for path, file in found.items()}


def _write_journal(directory: Path, records: list[Change]) -> dict[str, str]:
    """A journal in a state directory of its own; returns what makes rdc find it."""
    (directory / "rdc").mkdir(parents=True)
    journal = JournalWriter(os.fsencode(directory / "rdc" / "0.journal"))
    journal.write(records)
    journal.close()
    return {"XDG_STATE_HOME": str(directory)}


def _dedupe_scene(
    name: str, place: Path, top: Path, before: Snapshot, calls: list[Call], wanted: Tree, told: list[_Told]
) -> Scene:
    """`wanted`: what every path has, before, after, and at any moment. `told`: by the journals."""
    files = {path: node for path, node in wanted.items() if isinstance(node, File)}
    numbers = count()

    def check(state: State) -> None:
        for path, node in files.items():
            assert state.tree.get(path) == node, (path, state.tree.get(path))

    def converges(at: Path, state: State) -> None:
        state.write(at)
        number = next(numbers)
        records = [record for one in told for record in one.again(state, at)]
        environ = _write_journal(place / f"state{number}", records)
        run = dedupe("--hardlink", "--apply", "--journal", place / f"again{number}", at, environ=environ)
        assert run.code == 0, run
        found = read_tree(at)
        assert {path: node for path, node in found.items() if isinstance(node, File)} == files
        assert len({os.lstat(os.path.join(os.fsencode(at), path)).st_ino for path in files}) == 3

    return Scene(name, before, read_tree(top), calls, check, check, converges)


def _linking(place: Path, library: Path) -> tuple[Scene, _Told]:
    top = _duplicates(place / "top")
    before = snapshot(top)
    words = ("dedupe", "--hardlink", "--apply", "--no-catalog", "--journal", place / "journal", top)
    files = files_by_number(top, before)
    calls = record(library, top, place / "log", *words)
    told = _Told(top, read_journal(os.fsencode(place / "journal")).changes, files)
    return _dedupe_scene("dedupe", place, top, before, calls, before.tree, [told]), told


def linking(place: Path, library: Path) -> Scene:
    return _linking(place, library)[0]


def clearing(place: Path, library: Path) -> Scene:
    """The run after one that the power ended."""
    first, told = _linking(place, library)
    history = History(first.before, first.calls)
    cuts = (Cut(prefix, frozenset()) for prefix in range(len(history)))
    half = next(
        state
        for state in map(history.state, cuts)
        if sum(is_displaced(path.rpartition(b"/")[2]) for path in state.tree) > 2
        and len(set(state.files.values())) < len(state.files) - 3
    )
    top = place / "half"
    top.mkdir()
    before = snapshot(half.write(top))
    earlier = told.again(half, top)
    environ = _write_journal(place / "state of half", earlier)
    files = files_by_number(top, before)
    words = ("dedupe", "--hardlink", "--apply", "--no-catalog", "--journal", place / "second", top)
    calls = record(library, top, place / "log", *words, environ=environ)
    journals = [earlier, read_journal(os.fsencode(place / "second")).changes]
    again = [_Told(top, records, files) for records in journals]
    return _dedupe_scene("dedupe again", place, top, before, calls, first.before.tree, again)


def undoing(place: Path, library: Path) -> Scene:
    top = _duplicates(place / "top")
    journal = place / "journal"
    run = dedupe("--hardlink", "--apply", "--journal", journal, top)
    assert run.code == 0, run
    before = snapshot(top)
    calls = record(library, top, place / "log", "dedupe", "--undo", journal)
    return _dedupe_scene("dedupe --undo", place, top, before, calls, before.tree, [])


def journalled(place: Path, library: Path) -> Scene:
    """The journal and what it tells of: no link without its record."""
    top = place / "top"
    top.mkdir()
    _duplicates(top / "files")
    before = snapshot(top)
    log = place / "log"
    words = ("dedupe", "--hardlink", "--apply", "--no-catalog", "--journal", top / "journal", top / "files")
    calls = record(library, top, log, *words)
    own = History(before, [])
    alone = own.state(Cut(0, frozenset())).files

    def check(state: State) -> None:
        linked = {path[6:] for path, file in alone.items() if state.files.get(path) != file}
        if linked:
            journal = place / "a journal"
            node = state.tree.get(b"journal")
            assert isinstance(node, File), "links without a journal"
            journal.write_bytes(node.content)
            told = {entry.path for entry in read_journal(os.fsencode(journal)).changes}
            assert linked <= told, (linked, told)

    return Scene("journal", before, read_tree(top), calls, check, check, lambda at, state: None)


def unsettled(place: Path, library: Path) -> Scene:
    """Make a scene in which one file of each group is not on disk yet when the run begins: the others must
    not be given up for it."""
    top = _duplicates(place / "top")
    late = [path for path in sorted(top.rglob("group*")) if path.name[5] == path.name[-1]]
    wanted = snapshot(top).tree
    for path in late:
        path.rename(place / path.name)
    before = snapshot(top)
    log = place / "log"
    calls: list[Call] = []
    for path in late:
        # Attributes and all, as a program would that does not sync.
        copy = ("-c", "import shutil, sys; shutil.copy2(*sys.argv[1:])", place / path.name, path)
        calls += record(library, top, log, *copy, argv=(sys.executable,))
    words = ("dedupe", "--hardlink", "--apply", "--no-catalog", "--journal", place / "journal", top)
    calls += record(library, top, log, *words)
    durable = {path: node for path, node in before.tree.items() if isinstance(node, File)}
    assert len(late) == 3
    assert len({os.stat(top / os.fsdecode(path)).st_ino for path in wanted if path.count(b"/")}) == 3

    def check(state: State) -> None:
        for path, node in durable.items():
            assert state.tree.get(path) == node, (path, state.tree.get(path))

    return Scene(
        "dedupe of files not synced", before, read_tree(top), calls, check, check, lambda at, state: None
    )
