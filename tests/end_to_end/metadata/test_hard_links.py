"""--hard-links: names of one file stay names of one file, and nothing else changes for it."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, ProtocolError
from rdc.files.base.paths import temporary_name
from rdc.limits import SMALL_MANIFEST
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.plan.compare import Decision
from rdc.protocol.messages import HardLinks, Role
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source.tree_description import Description
from rdc.session.transfer.commits import FileCommits
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.hard_links import group, groups, link
from tests.support.trees.loop_images import memory_mounted
from tests.support.trees.trees import (
    LONG_AGO,
    Directory,
    File,
    Link,
    describe,
    litter,
    read_tree,
    tree,
    write_tree,
)

LINKS = SyncOptions(hard_links=True, fsync=False)
MANY = {f"many/{number:03}": b"%d" % number for number in range(SMALL_MANIFEST)}

_rng = random.Random(5)
LARGE = _rng.randbytes(300_000)
OTHER = _rng.randbytes(200_000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    files = dict.fromkeys(("a", "b", "d/c"), LARGE) | dict.fromkeys(("d/x", "e/f/x", "e/own"), OTHER)
    top = write_tree(tmp_path / "s", tree(files) | tree({"l": Link(b"a")}))
    link(top, "a", "b", "d/c")
    link(top, "d/x", "e/f/x")
    return top


GROUPS = {group("a", "b", "d/c"), group("d/x", "e/f/x")}


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("way", Way)
def test_a_first_copy(way: Way, source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "d"
    rehearsed = run_sync(source, destination, replace(LINKS, dry_run=True), way=way)
    assert not destination.exists()
    run = run_sync(source, destination, LINKS, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert describe(read_tree(source), read_tree(destination)) == []
    assert groups(destination) == GROUPS
    assert run.done.literal_bytes == len(LARGE) + len(OTHER)
    made = [item for item in run.items if item.startswith("h")]
    assert made == ["hf+++++++++ b", "hf+++++++++ d/c", "hf+++++++++ e/f/x"]
    assert sorted(rehearsed.items) == sorted(run.items)
    assert run_sync(source, destination, LINKS, way=way).items == []
    told = subprocess.run(
        ["rsync", "-aHni", "--modify-window=-1", f"{source}/", f"{destination}/"],
        check=True,
        capture_output=True,
    )
    assert told.stdout == b""


def test_without_it_they_are_files_of_their_own(source: Path, tmp_path: Path) -> None:
    run_sync(source, tmp_path / "d", SyncOptions(fsync=False))
    assert groups(tmp_path / "d") == set()


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("more", [{}, MANY], ids=["listed", "by manifest"])
@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("way", Way)
def test_whatever_is_there_already(
    way: Way, checksum: bool, more: dict[str, bytes], source: Path, tmp_path: Path
) -> None:
    """Separate files, other contents, other kinds, other metadata, another linking, and nothing at all."""
    write_tree(source, tree(more)) if more else None
    destination = write_tree(
        tmp_path / "d",
        tree(
            {
                "a": LARGE[:100_000] + b"edit" + LARGE[100_000:],
                "b": File(b"short", 0o600, 5),
                "d/c": File(LARGE, 0o600),
                "d/x": OTHER,
                "e/f/x": Link(b"nowhere"),
                "e/own": b"was linked to what stays",
                "stays": b"was linked to what stays",
                "l": b"a file",
                **more,
            }
        ),
    )
    link(destination, "stays", "e/own")
    run = run_sync(source, destination, replace(LINKS, checksum=checksum), way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert run.done.literal_bytes < 1000 + len(OTHER) + sum(map(len, more.values()))
    expected = read_tree(source) | {b"stays": File(b"was linked to what stays")}
    assert describe(expected, read_tree(destination)) == []
    assert groups(destination) == GROUPS
    assert "hf..t.p.... d/c" not in run.items  # its time was right
    assert "hf...p..... d/c" in run.items
    assert run_sync(source, destination, replace(LINKS, checksum=checksum), way=way).items == []


@pytest.mark.parametrize("way", Way)
def test_a_rehearsal_where_a_symlink_is_in_the_way_of_a_directory(way: Way, tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "d"
    (source / "z").mkdir(parents=True)
    destination.mkdir()
    (source / "a").write_bytes(b"1")
    link(source, "a", "z/a")
    (destination / "z").symlink_to(tmp_path)
    rehearsed = run_sync(source, destination, replace(LINKS, dry_run=True), way=way)
    run = run_sync(source, destination, LINKS, way=way)
    assert (rehearsed.done.exit, rehearsed.problems) == (ExitCode.OK, [])
    assert sorted(rehearsed.items) == sorted(run.items)
    assert groups(destination) == {group("a", "z/a")}


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("way", Way)
def test_changes_reach_all_names(way: Way, source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "d"
    run_sync(source, destination, LINKS, way=way)
    with (source / "b").open("ab") as file:
        file.write(b"more")
    (source / "d/x").chmod(0o600)
    rehearsed = run_sync(source, destination, replace(LINKS, dry_run=True), way=way)
    run = run_sync(source, destination, LINKS, way=way)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert groups(destination) == GROUPS
    assert run.done.literal_bytes < 1000
    assert [item[12:] for item in run.items if item.startswith("h")] == ["b", "d/c"]
    assert sorted(item[12:] for item in rehearsed.items) == sorted(item[12:] for item in run.items)
    # One name becomes a file of its own, another joins.
    (source / "b").unlink()
    (source / "b").write_bytes(b"alone")
    link(source, "d/x", "e/own")
    run_sync(source, destination, LINKS, way=way)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert groups(destination) == {group("a", "d/c"), group("d/x", "e/f/x", "e/own")}


@pytest.mark.parametrize("way", Way)
def test_renames_and_new_names_cost_no_content(way: Way, source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "d"
    run_sync(source, destination, LINKS, way=way)
    (source / "d").rename(source / "moved")
    # A name before all others becomes the first: the content is here under the others.
    os.link(source / "a", source / "_first")
    os.link(source / "moved/x", source / "_x")
    run = run_sync(source, destination, replace(LINKS, delete=True), way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert run.done.literal_bytes == 0
    assert describe(read_tree(source), read_tree(destination)) == []
    assert groups(destination) == {
        group("_first", "a", "b", "moved/c"), group("_x", "moved/x", "e/f/x")
    }  # fmt: skip


@pytest.mark.parametrize("held", [None, OTHER, LARGE[:-1]])
def test_names_of_a_file_that_is_written_to_meanwhile(
    held: bytes | None, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was listed, and before it is read: like a log's at every run."""
    if held is not None:
        write_tree(tmp_path / "d", tree(dict.fromkeys(("a", "b", "d/c"), held)))
    decide = FileCommits.decide

    def write(self: FileCommits, file: int, decision: Decision) -> None:
        with (source / "b").open("ab") as stream:
            stream.write(b"a line\n")
        decide(self, file, decision)

    monkeypatch.setattr(FileCommits, "decide", write)
    run = run_sync(source, tmp_path / "d", LINKS)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert groups(tmp_path / "d") == GROUPS
    assert (tmp_path / "d/d/c").read_bytes().startswith(LARGE + b"a line\n")


@pytest.mark.parametrize("way", Way)
def test_names_that_are_left_out_take_no_part(way: Way, source: Path, tmp_path: Path) -> None:
    os.link(source / "e/own", tmp_path / "outside")
    rules = (FilterRule(RuleAction.EXCLUDE, b"/a"), FilterRule(RuleAction.EXCLUDE, b"/e/f"))
    destination = tmp_path / "d"
    options = replace(LINKS, rules=rules)
    run_sync(source, destination, options, way=way)
    assert groups(destination) == {group("b", "d/c")}
    assert (destination / "d/x").stat().st_nlink == 1
    assert run_sync(source, destination, options, way=way).items == []


@pytest.mark.parametrize("dialler", list(Role))
def test_an_unchanged_tree_costs_one_round_trip(dialler: Role, source: Path, tmp_path: Path) -> None:
    write_tree(source, tree(MANY))
    link(source, "many/000", "many/100", "many/199", "e/many")
    sync_in_turns(source, tmp_path / "d", LINKS, dialler=dialler)
    run = sync_in_turns(source, tmp_path / "d", LINKS, dialler=dialler)
    assert (run.items, run.done.round_trips) == ([], 1)
    # Where the source dials, it sends the destination's path.
    assert run.done.bytes_sent + run.done.bytes_received < 405 + len(os.fsencode(tmp_path))
    assert "HardLinks" not in kinds(run)
    # Nothing but the linking differs.
    name = tmp_path / "d/many/100"
    copy = name.read_bytes()
    name.unlink()
    name.write_bytes(copy)
    os.utime(name, ns=(LONG_AGO, LONG_AGO))
    run = sync_in_turns(source, tmp_path / "d", LINKS, dialler=dialler)
    assert [item for item in run.items if item.startswith("h")] == ["hf          many/100"]
    assert describe(read_tree(source), read_tree(tmp_path / "d")) == []


@pytest.mark.parametrize("delete", [False, True], ids=["keep", "delete"])
@pytest.mark.parametrize("taken", ["a", "b"], ids=["the first name", "a further name"])
def test_a_directory_in_the_way(taken: str, delete: bool, source: Path, tmp_path: Path) -> None:
    """The others have the content all the same, if as a file of its own."""
    destination = write_tree(tmp_path / "d", tree({f"{taken}/in/side": b"mine"}))
    run = run_sync(source, destination, replace(LINKS, delete=delete))
    if delete:
        assert run.done.exit == ExitCode.OK
        assert describe(read_tree(source), read_tree(destination)) == []
        assert groups(destination) == GROUPS
        return
    assert run.done.exit == ExitCode.PARTIAL
    assert [problem.path_bytes for problem in run.problems] == [os.fsencode(taken)]
    assert (destination / taken / "in/side").read_bytes() == b"mine"
    for name in {"a", "b", "d/c"} - {taken}:
        assert (destination / name).read_bytes() == LARGE


@pytest.mark.needs("mount")
@pytest.mark.parametrize("way", Way)
def test_where_no_link_can_be_made_there_are_files(way: Way, source: Path, tmp_path: Path) -> None:
    destination = write_tree(tmp_path / "d", tree({"d": Directory()}))
    with memory_mounted(destination / "d"):
        run = run_sync(source, destination, LINKS, way=way)
        assert (run.done.exit, run.problems) == (ExitCode.OK, [])
        assert describe(read_tree(source), read_tree(destination)) == []
        assert groups(destination) == {group("a", "b")}
        assert run_sync(source, destination, LINKS, way=way).items == []
        (source / "a").chmod(0o600)
        run_sync(source, destination, LINKS, way=way)
        assert describe(read_tree(source), read_tree(destination)) == []


def test_what_a_kill_left_is_not_written_to(source: Path, tmp_path: Path) -> None:
    """A temporary name of a file that is in place: taken for what came of another one, it must stay whole."""
    destination = tmp_path / "d"
    run_sync(source, destination, LINKS)
    for name in (b"b", b"a", b"new"):
        os.link(destination / "a", os.path.join(os.fsencode(destination), temporary_name(name)))
    held = (destination / "a").open("rb")
    (source / "b").unlink()
    (source / "b").write_bytes(OTHER + LARGE)
    (source / "new").write_bytes(LARGE + OTHER)
    run_sync(source, destination, LINKS)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert litter(read_tree(destination)) == []
    with held:
        assert held.read() == LARGE


@pytest.mark.parametrize("options", [LINKS, SyncOptions(fsync=False), SyncOptions()])
def test_each_name_becomes_another_file_in_one_run(options: SyncOptions, tmp_path: Path) -> None:
    """A name that is taken from a file changes its ctime, and is no reason to keep the other names."""
    names = ("a", "b", "d/c", "d/e")
    source = write_tree(tmp_path / "s", tree({name: LARGE + os.fsencode(name) for name in names}))
    destination = write_tree(tmp_path / "d", tree(dict.fromkeys(names, LARGE)))
    link(destination, *names)
    run = run_sync(source, destination, options)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert describe(read_tree(source), read_tree(destination)) == []


def test_durable_and_by_command_line(source: Path, tmp_path: Path) -> None:
    ended = command("sync", "-aHi", f"{source}/", f"{tmp_path}/d/")
    assert ended.code == 0
    assert "hf+++++++++ b => a\n" in ended.out
    assert groups(tmp_path / "d") == GROUPS


def test_what_it_does_not_go_with(source: Path, tmp_path: Path) -> None:
    assert command("watch", "-H", source, tmp_path / "d").code == ExitCode.USAGE


# Random trees: any partition of names, and a destination that has fallen behind


@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.integers(0, 4), min_size=9, max_size=9),
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from(("edit", "apart", "gone", "mode"))), max_size=5),
    st.lists(st.integers(0, 4), min_size=9, max_size=9),
)
def test_any_partition(
    tmp_path: Path, before: list[int], changes: list[tuple[int, str]], after: list[int]
) -> None:
    top = Path(tempfile.mkdtemp(dir=tmp_path))
    names = [f"{place}{name}" for place in ("", "d/", "e/") for name in "abc"]

    def make(at: Path, partition: list[int]) -> Path:
        write_tree(at, tree({name: b"%d" % number for name, number in zip(names, partition, strict=True)}))
        for number in set(partition):
            link(at, *(name for name, found in zip(names, partition, strict=True) if found == number))
        return at

    run_sync(make(top / "s", before), top / "d", LINKS)
    assert groups(top / "d") == groups(top / "s")
    for number, change in changes:
        path = top / "d" / names[number]
        if not path.exists() or change == "gone":
            path.unlink(missing_ok=True)
        elif change == "mode":
            path.chmod(0o600)
        else:
            content = path.read_bytes() + b"edit" * (change == "edit")
            path.unlink()
            path.write_bytes(content)
    source = make(top / "t", after)
    for number in range(9):
        os.utime(source / names[number], ns=(LONG_AGO + 1, LONG_AGO + 1))
    run = run_sync(source, top / "d", LINKS)
    assert run.done.exit == ExitCode.OK
    assert describe(read_tree(source), read_tree(top / "d")) == []
    wanted = groups(source)
    found = groups(top / "d")
    # More linking than at the source is left where contents are the same; here no two files' are.
    assert found == wanted
    assert run_sync(source, top / "d", LINKS).items == []


@pytest.mark.parametrize("row", [2, 4, 40])
def test_a_link_to_what_is_no_file_ends_the_session(
    row: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 2 is a directory, row 4 a symlink, and row 40 is never listed."""

    def lie(self: Description, start: int, stop: int, round_: int) -> Conversation[None]:
        if not start:
            yield Send(HardLinks((row,), (0,)), round_)

    monkeypatch.setattr(Description, "_send_links", lie)
    with pytest.raises(ProtocolError):
        sync_in_turns(source, tmp_path / "d", LINKS)
