"""A file here that has several names: one of them gets another mtime, and what the others have stays.

rsync writes such a file anew under that one name, whatever is in it; so what it leaves is the reference.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Metadata
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.session.transfer.content_checks import ALIKE_FILES
from tests.support.running.syncing import Way, run_sync
from tests.support.share import examples
from tests.support.trees.hard_links import group, groups, link
from tests.support.trees.trees import LONG_AGO, Directory, File, litter, read_tree, tree, write_tree
from tests.support.trees.unprivileged import NOBODY, as_nobody, place_of_nobody

CONTENT = random.Random(7).randbytes(50_000)
PLAIN = SyncOptions(fsync=False)
LINKS = replace(PLAIN, hard_links=True)
SECOND = 10**9

HELD, WANTED = LONG_AGO, LONG_AGO + 5 * SECOND
MANY = {f"many/{number}": File(b"%d" % number, mtime_ns=HELD) for number in range(ALIKE_FILES)}
"""So many files are read together, fewer one by one."""


def place(tmp_path: Path, source: dict[str, File], held: dict[str, File]) -> tuple[Path, Path]:
    return write_tree(tmp_path / "s", tree(source)), write_tree(tmp_path / "d", tree(held))


def times(top: Path) -> dict[str, int]:
    return {
        os.fsdecode(path): node.mtime_ns for path, node in read_tree(top).items() if isinstance(node, File)
    }


def expect_settled(source: Path, destination: Path, options: SyncOptions) -> None:
    assert litter(read_tree(destination)) == []
    assert run_sync(source, destination, options).items == []


@pytest.mark.parametrize("number", [1, ALIKE_FILES])
@pytest.mark.parametrize("options", [PLAIN, SyncOptions(), LINKS], ids=["", "fsync", "-H"])
@pytest.mark.parametrize("way", Way)
def test_a_name_that_the_source_does_not_have(
    way: Way, options: SyncOptions, number: int, tmp_path: Path
) -> None:
    """It may be one in a snapshot beside the tree, or only here."""
    names = [f"{at:02}" for at in range(number)]
    source, destination = place(
        tmp_path,
        {name: File(CONTENT[at:], mtime_ns=WANTED) for at, name in enumerate(names)},
        {name: File(CONTENT[at:], mtime_ns=HELD) for at, name in enumerate(names)},
    )
    (tmp_path / "snapshot").mkdir()
    for name in names:
        link(destination, name, f"{name}.here", f"../snapshot/{name}")
    rehearsed = run_sync(source, destination, replace(options, dry_run=True), way=way)
    run = run_sync(source, destination, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert [item for item in run.items if item != ".d..t...... ./"] == [
        f".f..t...... {name}" for name in names
    ]
    assert [item[1:] for item in rehearsed.items] == [item[1:] for item in run.items]
    assert run.done.literal_bytes == 0
    assert times(destination) == dict.fromkeys(names, WANTED) | {f"{name}.here": HELD for name in names}
    assert set(times(tmp_path / "snapshot").values()) == {HELD}
    for at, name in enumerate(names):
        assert (
            (destination / name).read_bytes() == (destination / f"{name}.here").read_bytes() == CONTENT[at:]
        )
    expect_settled(source, destination, options)


@pytest.mark.parametrize("more", [{}, MANY], ids=["few", "many"])
@pytest.mark.parametrize("way", Way)
def test_names_that_are_to_have_different_times(way: Way, more: dict[str, File], tmp_path: Path) -> None:
    touched = {name: replace(file, mtime_ns=WANTED) for name, file in more.items()}
    source, destination = place(
        tmp_path,
        {name: File(CONTENT, mtime_ns=WANTED + at) for at, name in enumerate("abc")} | touched,
        dict.fromkeys("abc", File(CONTENT, mtime_ns=HELD)) | more,
    )
    link(destination, "a", "b", "c")
    run_sync(source, destination, PLAIN, way=way)
    assert times(destination) == times(source)
    expect_settled(source, destination, PLAIN)


def test_what_is_excluded(tmp_path: Path) -> None:
    source, destination = place(
        tmp_path,
        {"a": File(CONTENT, mtime_ns=WANTED), "b": File(CONTENT, mtime_ns=WANTED)},
        {"a": File(CONTENT, mtime_ns=HELD), "b": File(CONTENT, mtime_ns=HELD)},
    )
    link(source, "a", "b")
    link(destination, "a", "b")
    options = replace(LINKS, rules=(FilterRule(RuleAction.EXCLUDE, b"/b"),))
    run_sync(source, destination, options)
    assert times(destination) == {"a": WANTED, "b": HELD}
    expect_settled(source, destination, options)


@pytest.mark.parametrize("options", [PLAIN, LINKS], ids=["", "-H"])
def test_a_directory_that_cannot_be_read(options: SyncOptions) -> None:
    with place_of_nobody() as top:
        source, destination = place(
            top,
            {"a": File(CONTENT, mtime_ns=WANTED), "closed/b": File(CONTENT, mtime_ns=WANTED)},
            {"a": File(CONTENT, mtime_ns=HELD), "closed/b": File(CONTENT, mtime_ns=HELD)},
        )
        link(source, "a", "closed/b")
        link(destination, "a", "closed/b")
        (source / "closed").chmod(0)
        for path in top.rglob("*") if os.geteuid() == 0 else ():
            os.chown(path, NOBODY, NOBODY)

        def synced() -> tuple[int, list[bytes]]:
            run = run_sync(source, destination, options)
            return run.done.exit, [problem.path_bytes for problem in run.problems]

        assert as_nobody(synced) == (ExitCode.PARTIAL, [b"closed"])
        (destination / "closed").chmod(0o755)
        assert times(destination) == {"a": WANTED, "closed/b": HELD}


# Where the other names get the same


@pytest.mark.parametrize("outside", [False, True], ids=["all names", "one more"])
def test_with_links_nothing_is_copied_where_all_names_become_the_file(outside: bool, tmp_path: Path) -> None:
    names = ("a", "b", "d/c")
    source, destination = place(
        tmp_path,
        dict.fromkeys(names, File(CONTENT, mtime_ns=WANTED)),
        dict.fromkeys(names, File(CONTENT, mtime_ns=HELD)),
    )
    link(source, *names)
    link(destination, *names)
    inode = (destination / "a").stat().st_ino
    if outside:
        os.link(destination / "a", tmp_path / "outside")
    run_sync(source, destination, LINKS)
    assert times(destination) == dict.fromkeys(names, WANTED)
    assert groups(destination) == {group(*names)}
    assert ((destination / "a").stat().st_ino == inode) is not outside
    if outside:
        assert (tmp_path / "outside").stat().st_mtime_ns == HELD
    expect_settled(source, destination, LINKS)


@pytest.mark.parametrize("number", [1, ALIKE_FILES])
@pytest.mark.parametrize("options", [replace(PLAIN, checksum=True), replace(PLAIN, size_only=True)])
def test_where_the_time_does_not_decide_it_is_set_in_place(
    options: SyncOptions, number: int, tmp_path: Path
) -> None:
    names = [f"{at:02}" for at in range(number)]
    source, destination = place(
        tmp_path,
        dict.fromkeys(names, File(CONTENT, mtime_ns=WANTED)),
        dict.fromkeys(names, File(CONTENT, mtime_ns=HELD)),
    )
    for name in names:
        os.link(destination / name, tmp_path / f"outside {name}")
    run_sync(source, destination, options)
    for name in names:
        assert (destination / name).samefile(tmp_path / f"outside {name}")
    assert times(destination) == dict.fromkeys(names, WANTED)


# Any names


@pytest.mark.needs("rsync")
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.integers(0, 2), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 2), st.integers(0, 2))), min_size=6, max_size=6),
    st.booleans(),
)
def test_any_names_have_the_times_that_rsync_leaves(
    tmp_path: Path, partition: list[int], wanted: list[tuple[int, int] | None], links: bool
) -> None:
    """Each of the source's names, if it has it, has one of three contents and one of three times."""
    top = Path(tempfile.mkdtemp(dir=tmp_path))
    names = ("a", "b", "c", "d/a", "d/b", "e/a")
    contents = [CONTENT[:5_000], CONTENT[:5_000][::-1], CONTENT[-5_000:]]
    held = {name: File(contents[which], mtime_ns=HELD) for name, which in zip(names, partition, strict=True)}
    given = {
        name: File(contents[one[0]], mtime_ns=HELD + one[1] * SECOND)
        for name, one in zip(names, wanted, strict=True)
        if one is not None
    }
    source = write_tree(top / "s", tree(given) | tree({"d": Directory(), "e": Directory()}))
    left = []
    for which in ("rdc", "rsync"):
        destination = write_tree(top / which, tree(held))
        for number in set(partition):
            link(destination, *(name for name, one in zip(names, partition, strict=True) if one == number))
        if which == "rsync":
            words = ["rsync", "-aH" if links else "-a", "--modify-window=-1", f"{source}/", f"{destination}/"]
            subprocess.run(words, check=True)
        else:
            run_sync(source, destination, LINKS if links else PLAIN)
            expect_settled(source, destination, LINKS if links else PLAIN)
        left.append({path: node for path, node in read_tree(destination).items() if isinstance(node, File)})
    assert left[0] == left[1]


# Others who write meanwhile


def _written(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"mine")


def _replaced(path: Path) -> None:
    path.with_name("new").write_bytes(b"mine" + CONTENT[4:])
    path.with_name("new").rename(path)


@pytest.mark.parametrize("change", [_written, _replaced])
@pytest.mark.parametrize("moment", ["before the copy", "in the copy", "after the copy"])
def test_who_writes_meanwhile_keeps_what_he_wrote(
    moment: str, change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = place(
        tmp_path, {"a": File(CONTENT, mtime_ns=WANTED)}, {"a": File(CONTENT, mtime_ns=HELD)}
    )
    os.link(destination / "a", tmp_path / "outside")
    part, copy, flush = CommitGroup.part, Replacement.copy_from, CommitGroup.flush

    def before(self: CommitGroup, *words: Any) -> None:
        change(destination / "a")
        part(self, *words)

    def within(self: Replacement, *words: int) -> int:
        copied = copy(self, *words)
        change(destination / "a")
        return copied

    def after(self: CommitGroup) -> None:
        if self._staged:
            change(destination / "a")
        flush(self)

    if moment == "before the copy":
        monkeypatch.setattr(CommitGroup, "part", before)
    elif moment == "in the copy":
        monkeypatch.setattr(Replacement, "copy_from", within)
    else:
        monkeypatch.setattr(CommitGroup, "flush", after)
    run = run_sync(source, destination, PLAIN)
    assert (run.done.exit, [problem.path_bytes for problem in run.problems]) == (ExitCode.PARTIAL, [b"a"])
    assert (destination / "a").read_bytes() == b"mine" + CONTENT[4:]
    assert (destination / "a").stat().st_mtime_ns not in {HELD, WANTED}
    assert litter(read_tree(destination)) == []


def test_what_was_done_under_another_name_is_no_change(tmp_path: Path) -> None:
    """A name that is taken from a file changes its ctime: the next one gets its copy all the same."""
    top = write_tree(tmp_path / "r", tree(dict.fromkeys(("a", "b"), CONTENT)))
    link(top, "a", "b")
    root = Root.open(os.fsencode(top))
    errors: list[FileError] = []
    done: list[bytes] = []
    group_ = CommitGroup(root, fsync=False, on_commit=done.append, on_error=errors.append)
    held = root.identity(b"b")
    owner = (os.geteuid(), os.getegid())
    for at, name in enumerate((b"a", b"b")):
        # The first copy lands, and so takes a name from the file, before the second is made.
        group_.part(name, Metadata(0o600, WANTED + at, *owner), False, held)
        group_.flush()
    assert (errors, done) == ([], [b"a", b"b"])
    assert times(top) == {"a": WANTED, "b": WANTED + 1}
    with pytest.raises(FileError, match="changed or replaced"):
        group_.part(b"a", Metadata(0o600, HELD, *owner), False, held)
    assert times(top) == {"a": WANTED, "b": WANTED + 1}
    root.close()
