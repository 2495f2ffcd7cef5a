"""Runs of `rdc dupes` that remove duplicates, recorded for tests/support/power/power_cut.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

from rdc.duplicates.journal import Change, JournalWriter, read_journal
from rdc.files.base.paths import is_reserved
from rdc.lean.records import replace
from tests.support.power.power_checks import Scene
from tests.support.power.power_cut import State
from tests.support.power.power_dedupes import files_by_number
from tests.support.power.power_log import snapshot
from tests.support.power.recorded_writes import record
from tests.support.running.deduping import blob, dedupe, dupes
from tests.support.trees.trees import File, Link, Tree, read_tree

__all__ = ["removing", "returning"]

GROUPS = 3


def _duplicates(top: Path) -> Path:
    for group in range(GROUPS):
        for copy in range(3):
            path = top / "files" / ("a" if copy % 2 else "b") / f"group{group}-copy{copy}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(blob(group, 9_000 + 4096 * group))
            path.chmod(0o640)
            os.utime(path, ns=(1_000 + copy, 1_000 + copy))
    return top


def _files(tree: Tree) -> dict[bytes, File]:
    """Regular files under names that are not reserved."""
    return {
        path: node
        for path, node in tree.items()
        if isinstance(node, File) and not is_reserved(path.rpartition(b"/")[2])
    }


def _words(top: Path, action: str) -> list[str | Path]:
    words: list[str | Path] = [
        "--apply",
        "--keep=newest",
        f"--journal={top.parent / 'journal'}",
        top / "files",
    ]
    return [*words, f"--move={top / 'out'}" if action == "move" else f"--{action}"]


def _again(record: Change, state: State, top: Path, numbers: dict[int, int]) -> Change:
    """The same record for `state` at `top`, where the same file has another number; 1 if it is gone."""
    files = {file: path for path, file in state.files.items()}
    path = files.get(numbers.get(record.inode, -1))
    inode = 1 if path is None else os.lstat(os.path.join(os.fsencode(top), path)).st_ino
    real = os.fsencode(top / "files")
    return replace(record, top=real, kept=replace(record.kept, top=real), inode=inode)


def _write_journal(home: Path, records: list[Change]) -> None:
    (home / "rdc").mkdir(parents=True)
    journal = JournalWriter(os.fsencode(home / "rdc" / "dupes-0.journal"))
    journal.write(records)
    journal.close()


def removing(action: str) -> Callable[[Path, Path], Scene]:
    """Build the scene of one action. Every content has a whole file in every state, at least once."""

    def build(place: Path, library: Path) -> Scene:
        top = _duplicates(place / "top")
        before = snapshot(top)
        numbers = files_by_number(top, before)
        calls = record(library, top, place / "log", "dupes", "--no-catalog", *_words(top, action))
        records = read_journal(os.fsencode(place / "journal")).changes
        runs = count()
        after = read_tree(top)
        old, contents = _files(before.tree), {node.content for node in _files(before.tree).values()}

        def check(state: State) -> None:
            found = _files(state.tree)
            assert {node.content for node in found.values()} == contents
            for path, node in old.items():
                assert found.get(path) in (node, None), (path, found.get(path))

        def ended(state: State) -> None:
            check(state)
            assert _files(state.tree) == _files(after)

        def converges(at: Path, state: State) -> None:
            top = at / "top"
            state.write(top)
            home = place / f"state{next(runs)}"
            _write_journal(home, [_again(one, state, top, numbers) for one in records])
            run = dupes(*_words(top, action), environ={"XDG_STATE_HOME": str(home)})
            assert run.code == 0, run
            assert not list(at.rglob(".rdc-*.old"))
            found = _files(read_tree(top / "files"))
            assert len(found) == len({node.content for node in found.values()}) == GROUPS

        # Nobody sets the mtime of a link, so the recorder does not see it.
        links = frozenset(path for path, node in after.items() if isinstance(node, Link))
        return Scene(f"dupes --{action}", before, after, calls, check, ended, converges, links)

    return build


def returning(place: Path, library: Path) -> Scene:
    """The undo of a deletion: what is there stays, and what comes back is whole."""
    top = _duplicates(place / "top")
    wanted = _files(read_tree(top))
    run = dupes(*_words(top, "delete"))
    assert run.code == 0, run
    before = snapshot(top)
    calls = record(library, top, place / "log", "dedupe", "--undo", place / "journal")

    def check(state: State) -> None:
        found = _files(state.tree)
        assert found.items() <= wanted.items()
        assert found.items() >= _files(before.tree).items()

    def ended(state: State) -> None:
        assert _files(state.tree) == wanted

    def converges(at: Path, state: State) -> None:
        state.write(at)
        run = dedupe("--undo", place / "journal")
        assert run.code == 0, run

    return Scene("dupes, undone", before, read_tree(top), calls, check, ended, converges)
