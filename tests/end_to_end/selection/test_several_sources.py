"""Several SRC, -R and --files-from: what is taken, where it goes, and what is left alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.cli.options.sync_options import parse_sync, read_request
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.library.trees import sync
from rdc.model.location import Location
from rdc.model.options import FileList
from rdc.model.sync import SyncOptions
from rdc.progress import Event
from tests.support.oracle.cases import Case
from tests.support.oracle.comparison import differences
from tests.support.oracle.operands import operands
from tests.support.oracle.options import option_words
from tests.support.oracle.scenes import Scene, scenes
from tests.support.running.forced_command import forced
from tests.support.running.several_sources import SOURCE, paths_in, run, written
from tests.support.running.syncing import Way, command, shell
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree


@pytest.mark.needs("rsync")
@settings(max_examples=12, deadline=None)
@given(scenes(specials=True), option_words(), st.data())
def test_random_operands_end_as_with_rsync(scene: Scene, words: tuple[str, ...], data: st.DataObject) -> None:
    taken = data.draw(operands(scene.source.tree))
    assert differences(Case(scene, words, taken)) == []


@pytest.mark.parametrize("way", Way)
def test_trees_become_one(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"old": b"stays", "s/old": b"goes", "u/old": b"goes"}))
    options = SyncOptions(delete=True, fsync=False, hard_links=True)
    done = run(tmp_path, ["c", "a/s", "b/s", "b/u"], options, way)
    assert done.done.exit is ExitCode.OK
    assert paths_in(tmp_path / "d") == {"c", "old", "s", "s/g", "s/h", "u", "u/a"}
    again = run(tmp_path, ["c", "a/s", "b/s", "b/u"], options, way)
    assert (again.items, again.done.deleted) == ([], 0)


@pytest.mark.parametrize("way", Way)
def test_the_contents_of_several_directories(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"old": b"goes", "t": File(b"x" * 39_000 + b"y" * 1000, 0o600, 7)}))
    run(tmp_path, ["a/", "b/"], SyncOptions(delete=True, fsync=False), way)
    found = read_tree(tmp_path / "d")
    wanted = read_tree(tmp_path / "s" / "b") | read_tree(tmp_path / "s" / "a")
    assert describe(wanted, found) == []


@pytest.mark.parametrize("way", Way)
def test_a_missing_path_is_named_and_nothing_is_deleted(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"s/old": b"stays"}))
    done = run(tmp_path, ["a/s", "no", "c"], SyncOptions(delete=True, fsync=False), way)
    assert done.done.exit is ExitCode.PARTIAL
    assert any("/s/no: no such file or directory" in problem.message for problem in done.problems)
    assert paths_in(tmp_path / "d") == {"c", "s", "s/g", "s/old"}
    options = SyncOptions(delete=True, ignore_missing_args=True, fsync=False)
    ended = run(tmp_path, ["a/s", "no", "c"], options, way)
    assert (ended.done.exit, ended.done.deleted) == (ExitCode.OK, 1)


@pytest.mark.parametrize("way", Way)
def test_nothing_happens_if_all_are_missing(way: Way, tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(RdcError, match=r"no1: no such file.*no2: no such file") as caught:
        run(tmp_path, ["no1", "no2"], way=way)
    assert caught.value.code is ExitCode.PARTIAL


@pytest.mark.parametrize("way", Way)
def test_a_list_of_files(way: Way, tmp_path: Path) -> None:
    held = tree({"b/old": b"stays", "b/u/old": b"stays", "b/s/old": b"goes"})
    written(tmp_path, held)
    names = (b"b/t", b"b/u", b"/b/s/")
    options = SyncOptions(
        files=FileList(names), relative=True, recursive=False, delete=True, fsync=False, xattrs=True
    )
    done = run(tmp_path, [""], options, way)
    assert done.done.exit is ExitCode.OK
    found = read_tree(tmp_path / "d")
    assert paths_in(tmp_path / "d") == {"b", "b/old", "b/s", "b/s/h", "b/t", "b/u", "b/u/old"}
    assert all(found[path] == SOURCE[path] for path in (b"b", b"b/s", b"b/t", b"b/u"))


@pytest.mark.parametrize("way", Way)
def test_kept_paths_and_directories_that_keep_their_own(way: Way, tmp_path: Path) -> None:
    held = tree({"b/u/old": b"stays"})
    written(tmp_path, held)
    options = SyncOptions(relative=True, implied_dirs=False, fsync=False)
    done = run(tmp_path, ["b/u/a", "a/s"], options, way, at="./")
    found = read_tree(tmp_path / "d")
    assert set(found) == {b"", b"a", b"a/s", b"a/s/g", b"b", b"b/u", b"b/u/a", b"b/u/old"}
    assert [line for line in done.items if line.endswith(("b/", "u/", " a/"))] == []


def test_what_cannot_be_is_refused_by_name(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(UsageError, match="'\\.\\.' cannot be part of a relative path"):
        run(tmp_path, ["../x"], SyncOptions(relative=True), at="./")
    with pytest.raises(UsageError, match="--files-from takes one SRC"):
        run(tmp_path, ["a", "b"], SyncOptions(files=FileList((b"f",))))
    with pytest.raises(UsageError, match="cannot have '\\.\\.' in it"):
        run(tmp_path, [""], SyncOptions(files=FileList((b"a/../f",)), relative=True))
    with pytest.raises(UsageError, match="on two hosts"):
        sync([Location("one", b"a"), Location("two", b"b")], "d")
    with pytest.raises(UsageError, match="in two modules"):
        sync(["rdc://host/one/a", "rdc://host/two/b"], "d")
    with pytest.raises(UsageError, match="lies inside"):
        sync([f"{tmp_path}/s/a", f"{tmp_path}/s/b"], f"{tmp_path}/s/a/s")
    assert read_tree(tmp_path / "s") == read_tree(written(tmp_path / "fresh") / "s")


def test_a_confined_source_stays_inside(tmp_path: Path) -> None:
    """A key's root: every SRC is below it, and no link leads out."""
    written(tmp_path)
    secret = tmp_path / "secret"
    secret.mkdir()
    (tmp_path / "outside").mkdir()
    (secret / "key").write_bytes(b"a key")
    (tmp_path / "s" / "out").symlink_to(secret)
    events: list[Event] = []

    def pull(*paths: str) -> ExitCode:
        sources = [Location("far", os.fsencode(path)) for path in paths]
        options = SyncOptions(fsync=False, relative=paths[0].startswith("./"))
        remote = shell(forced(tmp_path, f"--root={tmp_path}/s", "--read-only"))
        report = sync(sources, f"{tmp_path}/d", options, shell=remote, reporter=events.append, catalog=None)
        return report.exit

    assert pull("/a", "b/u") is ExitCode.OK
    assert paths_in(tmp_path / "d") == {"a", "a/f", "a/s", "a/s/g", "u", "u/a"}
    assert pull("c", "out/key") is ExitCode.PARTIAL
    assert pull("./c", "./out/key") is ExitCode.PARTIAL
    assert pull("c", "../secret/key") is ExitCode.PARTIAL
    assert b"a key" not in {
        node.content for node in read_tree(tmp_path / "d").values() if isinstance(node, File)
    }


@pytest.mark.parametrize("words", [(), ("-0",)])
def test_the_list_comes_from_a_pipe(words: tuple[str, ...], tmp_path: Path) -> None:
    written(tmp_path)
    end = "\0" if words else "\n"
    reading, writing = os.pipe()
    os.write(writing, f"b/t{end}# a comment{end}{end}a{end}".encode())
    os.close(writing)
    ended = command("sync", *words, f"--files-from=/dev/fd/{reading}", f"{tmp_path}/s", f"{tmp_path}/d")
    os.close(reading)
    assert (ended.code, ended.complaints) == (0, [])
    assert paths_in(tmp_path / "d") == {"a", "b", "b/t"}


@pytest.mark.parametrize("way", Way)
def test_directories_without_what_is_in_them(way: Way, tmp_path: Path) -> None:
    written(tmp_path, tree({"a/old": b"stays", "old/x": b"goes", "s/old": b"stays"}))
    options = SyncOptions(recursive=False, delete=True, fsync=False)
    run(tmp_path, ["b/"], options, way)
    assert paths_in(tmp_path / "d") == {"f", "s", "s/old", "t", "u"}
    run(tmp_path, ["a"], options, way)
    assert paths_in(tmp_path / "d") == {"a", "f", "s", "s/old", "t", "u"}
    assert run(tmp_path, ["b/"], options, way).done.deleted == 1


@pytest.mark.parametrize(
    ("words", "recursive", "old"),
    [
        ([], True, False), (["-d"], False, False), (["-ad"], True, False), (["-da"], True, False),
        (["-d", "-r"], True, False), (["-a", "-d", "--no-r"], False, False), (["-d", "--no-d"], True, False),
        (["--no-r", "-d", "-r"], True, False), (["--old-dirs"], True, True), (["-d", "--old-d"], True, True),
        (["-d", "--no-r", "--old-d"], True, True), (["--old-d", "--no-r"], True, True),
        (["--old-d", "--no-r", "-d"], False, False), (["--old-d", "--no-d"], True, False),
    ],
)  # fmt: skip
def test_dirs_and_recursive_as_in_rsync(words: list[str], recursive: bool, old: bool) -> None:
    request = read_request(parse_sync([*words, "a", "b"]), lambda name: b"")
    assert request.options.recursive is recursive
    assert (request.options.rules != ()) is old
    with pytest.raises(UsageError, match="--no-recursive needs --dirs"):
        read_request(parse_sync(["--no-r", "a", "b"]), lambda name: b"")


@pytest.mark.needs("rsync")
def test_rule_files_protect_in_what_only_dst_has(tmp_path: Path) -> None:
    """Without recursion too: a directory that is to go keeps what its own rule file names, as in rsync."""
    held = {"old/.cvsignore": b"kept\n*.o\n", "old/kept": b"1", "old/x.o": b"2", "old/gone": b"3"}
    source = write_tree(tmp_path / "s", tree({"b/new": b"new"}))
    (tmp_path / "list").write_text("b/\n")
    words = ["-C", "--no-relative", "--delete", f"--files-from={tmp_path}/list", f"{source}/"]
    ours, theirs = (write_tree(tmp_path / name, tree(held)) for name in ("ours", "theirs"))
    assert command("sync", "--no-fsync", *words, f"{ours}/").code == 0
    subprocess.run(["rsync", "-a", *words, f"{theirs}/"], check=True)
    assert paths_in(ours) == paths_in(theirs) == {"new", "old", "old/kept", "old/x.o"}


def test_directories_on_the_way_keep_their_attributes(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a/b/f": b"1"}))
    for path in ("a", "a/b"):
        os.setxattr(source / path, "user.mark", b"of SRC")
    write_tree(tmp_path / "d", tree({"a/old": b"2"}))
    (tmp_path / "list").write_text("a/b\n")
    words = ["-X", "-r", "--no-implied-dirs", f"--files-from={tmp_path}/list", f"{source}/", f"{tmp_path}/d/"]
    ended = command("sync", "--no-catalog", "-i", *words)
    assert ended.code == ExitCode.OK
    assert os.listxattr(tmp_path / "d/a") == []
    assert os.getxattr(tmp_path / "d/a/b", "user.mark") == b"of SRC"
    assert command("sync", "--no-catalog", "-i", *words).out == ""
