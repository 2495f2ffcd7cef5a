"""Several SRC, a list of files and directories alone with a real daemon: confined to the module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.daemon.daemons import Daemon, running_daemon
from tests.support.trees.trees import read_tree, tree, write_tree

SOURCE = tree({"a/f": b"of a", "a/s/g": b"of a", "b/f": b"of b", "b/s/h": b"of b", "c": b"c"})


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    place = tmp_path_factory.mktemp("several")
    write_tree(place / "data", SOURCE)
    (place / "key").write_bytes(b"a key")
    (place / "data" / "out").symlink_to(place)
    modules = "".join(
        f'[modules.{name}]\npath = "{place}/{below}"\nallow = ["alice"]\n{more}\n'
        for name, below, more in (
            ("data", "data", "read-only = true"),
            ("drop", "drop", "read-only = false"),
            ("kept", "drop", "read-only = false\nno-delete = true"),
        )
    )
    (place / "drop").mkdir()
    with running_daemon(place / "daemon", modules) as running:
        yield running


def paths(top: Path) -> set[bytes]:
    return set(read_tree(top)) - {b""}


def test_several_of_one_module(daemon: Daemon, tmp_path: Path) -> None:
    several = map(daemon.url, ("data/a/", "data/b/s", "data/c"))
    done = daemon.sync(*several, tmp_path / "d")
    assert (done.code, done.complaints) == (0, [])
    assert paths(tmp_path / "d") == {b"f", b"s", b"s/g", b"s/h", b"c"}


def test_several_to_a_module(daemon: Daemon, tmp_path: Path) -> None:
    write_tree(tmp_path / "s", SOURCE)
    words = ("--delete-missing-args", f"{tmp_path}/s/a", f"{tmp_path}/s/b/s")
    assert daemon.sync(*words, daemon.url("drop/x/")).code == 0
    top = daemon.place.parent / "drop" / "x"
    assert paths(top) == {b"a", b"a/f", b"a/s", b"a/s/g", b"s", b"s/h"}
    gone = (f"{tmp_path}/s/c", f"{tmp_path}/s/f")
    (top / "f").write_bytes(b"goes")
    refused = daemon.sync("--delete-missing-args", *gone, daemon.url("kept/x/"))
    assert refused.code == ExitCode.REFUSED and "leave out --delete-missing-args" in refused.err
    assert b"f" in paths(top)
    assert daemon.sync("--delete-missing-args", *gone, daemon.url("drop/x/")).code == 0
    assert b"f" not in paths(top) and b"c" in paths(top)


def test_nothing_outside_of_the_module(daemon: Daemon, tmp_path: Path) -> None:
    for words in (("data/c", "data/out/key"), ("data/c", "data/../key"), ("data/out/key", "data/out/data")):
        done = daemon.sync(*map(daemon.url, words), f"{tmp_path}/d")
        assert done.code != 0, done
    listed = tmp_path / "list"
    listed.write_text("c\nout/key\n")
    assert daemon.sync(f"--files-from={listed}", daemon.url("data"), f"{tmp_path}/d").code != 0
    assert not any(b"key" in path for path in paths(tmp_path / "d"))


def test_a_list_below_the_module(daemon: Daemon, tmp_path: Path) -> None:
    (daemon.place.parent / "data" / "list").write_text("a/f\nb/./s/\n")
    for number, name in enumerate((":list", ":/list", daemon.url("data/list"))):
        done = daemon.sync(f"--files-from={name}", daemon.url("data"), f"{tmp_path}/{number}")
        assert (done.code, done.complaints) == (0, [])
        assert paths(tmp_path / str(number)) == {b"a", b"a/f", b"s", b"s/h"}
    for name in (":out/key", ":../key", daemon.url("drop/list"), ":none"):
        done = daemon.sync(f"--files-from={name}", daemon.url("data"), f"{tmp_path}/none")
        assert (done.code != 0, len(done.complaints)) == (True, 1), done
    write_tree(tmp_path / "s", SOURCE)
    (daemon.place.parent / "drop" / "list").write_text("c\n")
    assert daemon.sync("--files-from=:list", f"{tmp_path}/s", daemon.url("drop/y/")).code == 0
    assert paths(daemon.place.parent / "drop" / "y") == {b"c"}
    assert not (tmp_path / "none").exists()


def test_directories_alone_and_pruned(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.sync("-d", daemon.url("data/b/"), f"{tmp_path}/d").code == 0
    assert paths(tmp_path / "d") == {b"f", b"s"}
    assert daemon.sync("-m", "--exclude=g", daemon.url("data/a/"), f"{tmp_path}/e").code == 0
    assert paths(tmp_path / "e") == {b"f"}
