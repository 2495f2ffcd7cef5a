"""Several SRC where something goes wrong: a kill, a source that lies, an undo."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ProtocolError
from rdc.library.trees import sync
from rdc.model.entries import Kind
from rdc.model.location import Location
from rdc.model.options import Alternates, AlternateUse, FileList, KeepUndo
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import ListingPart, Message
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source.tree_description import Description
from tests.support.running import syncing
from tests.support.running.killed_sync import steps_of
from tests.support.running.several_sources import SOURCE, paths_in, run, written
from tests.support.trees.old_or_new import check_old_or_new
from tests.support.trees.trees import File, Tree, describe, read_tree, tree, write_tree
from tests.support.undo.undo_runs import undone
from tests.support.undo.undone_sync import census, unlike

HELD = tree(
    {"f": File(b"older", 0o600, 1), "s/old": b"goes", "old": b"stays", "t": File(b"y" * 30_000, 0o600, 1)}
)
TAKEN = ("a/f", "a/s", "b/s", "b/t")
WANTED = tree(
    {
        "f": SOURCE[b"a/f"],
        "s/g": SOURCE[b"a/s/g"],
        "s/h": SOURCE[b"b/s/h"],
        "t": SOURCE[b"b/t"],
        "old": b"stays",
    }
)
KEEP = KeepUndo(days=30)


class Killed:
    """A sync of several SRC that is put back to its start as often as wanted."""

    def __init__(self, place: Path) -> None:
        self._place = written(place)
        self.said = place / "said"

    def renew(self) -> None:
        shutil.rmtree(self._place / "d", ignore_errors=True)
        write_tree(self._place / "d", HELD)

    def sync(self, *, fsync: bool) -> None:
        done = run(self._place, TAKEN, SyncOptions(delete=True, fsync=fsync))
        assert done.problems == [], done.problems

    def found(self) -> Tree:
        return read_tree(self._place / "d")


def test_a_kill_before_every_step(tmp_path: Path) -> None:
    scene = Killed(tmp_path)
    scene.renew()
    steps = steps_of(scene, fsync=False)
    assert describe(WANTED | {b"": scene.found()[b""]}, scene.found()) == []
    assert steps > 10
    between = 0
    for at in range(0, steps, 2):
        scene.renew()
        if steps_of(scene, fsync=False, stop_at=at) < at:
            break
        found = check_old_or_new(scene.found(), HELD, WANTED, killed=True)
        between += bool(describe(HELD, found))
        if at % 6 == 0:
            scene.sync(fsync=False)
            assert describe(WANTED | {b"": scene.found()[b""]}, scene.found()) == []
    assert between > 2


Lie = Callable[[ListingPart], Sequence[Message]]


def lying(monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    """The source sends what `lie` makes of each part of its listing."""
    honest = Description.send_listing

    def listing(
        self: Description, round_: int, serve: Callable[[], Conversation[None]], *, again: bool = False
    ) -> Iterator[object]:
        told = honest(self, round_, serve, again=again)
        for command in told:
            if isinstance(command, Send) and isinstance(command.message, ListingPart):
                for message in lie(command.message):
                    yield Send(message, command.round)
            else:
                yield command

    monkeypatch.setattr(Description, "send_listing", listing)


def renamed(path: bytes, old: bytes, new: bytes) -> Lie:
    """In the directory at `path` one name is another."""

    def lie(part: ListingPart) -> list[Message]:
        names = tuple(sorted(new if name == old else name for name in part.listing.names))
        return [replace(part, listing=part.listing.named(names)) if part.path == path else part]

    return lie


def twice(part: ListingPart) -> list[Message]:
    """Each directory comes twice."""
    return [part, part]


def elsewhere(part: ListingPart) -> list[Message]:
    """What is in a selected directory is told of one that nobody selected."""
    return [replace(part, path=b"secret") if part.path == b"s" else part]


def upwards(part: ListingPart) -> list[Message]:
    return [replace(part, path=b"..") if part.path == b"s" else part]


LIES = {
    "other": renamed(b"", b"f", b"e"),
    "more": renamed(b"", b"s", b"r"),
    "above": renamed(b"", b"f", b".."),
    "outside": renamed(b"", b"t", b"../x"),
    "twice": twice,
    "elsewhere": elsewhere,
    "upwards": upwards,
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_source_that_tells_of_other_paths(
    lie: Lie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused by name, and no path is made that was not asked for."""
    written(tmp_path, tree({"mine": b"stays"}))
    lying(monkeypatch, lie)
    with pytest.raises(ProtocolError, match=r"the remote side|a listing of|two listings"):
        run(tmp_path, TAKEN, SyncOptions(delete=True, fsync=False, checksum=True))
    assert paths_in(tmp_path / "d") <= {"mine", "f", "s", "s/g", "s/h", "t"}
    assert "mine" in paths_in(tmp_path / "d")
    assert not (tmp_path / "x").exists()


def test_a_list_holds_for_what_is_below_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a directory of which another file was asked for."""
    written(tmp_path)
    lying(monkeypatch, renamed(b"b/u", b"a", b"key"))
    options = SyncOptions(files=FileList((b"b/u/a",)), relative=True, recursive=False, fsync=False)
    with pytest.raises(ProtocolError, match="'b/u/key', which was not asked for"):
        run(tmp_path, [""], options)
    assert not (tmp_path / "d" / "b" / "u" / "key").exists()


def test_all_of_them_are_undone_at_once(tmp_path: Path) -> None:
    written(tmp_path, HELD)
    before = census(tmp_path / "d")
    options = SyncOptions(delete=True, delete_missing_args=True, fsync=False, keep_undo=KEEP)
    done = run(tmp_path, [*TAKEN, "old"], options)
    assert (done.problems, paths_in(tmp_path / "d") & {"old", "s/old"}) == ([], set())
    assert undone(tmp_path / "d").left_alone == []
    assert unlike(before, census(tmp_path / "d")) == []


@pytest.mark.parametrize("use", AlternateUse)
def test_alternate_directories_and_undo(use: AlternateUse, tmp_path: Path) -> None:
    """What is undone leaves the alternate directory as it was."""
    written(tmp_path, tree({"c": File(b"old", 0o600, 1), "b/t": File(b"z", 0o600, 1), "gone": b"comes back"}))
    write_tree(tmp_path / "other", SOURCE)
    before, other = census(tmp_path / "d"), census(tmp_path / "other")
    alternates = Alternates(use, (b"../other",))
    options = SyncOptions(delete=True, fsync=False, keep_undo=KEEP, alternates=alternates)
    source = Location(None, os.fsencode(f"{tmp_path}/s/"))
    sync(source, Location(None, os.fsencode(f"{tmp_path}/d/")), options, catalog=None)
    assert undone(tmp_path / "d").left_alone == []
    assert unlike(before, census(tmp_path / "d")) == []
    assert unlike(other, census(tmp_path / "other")) == []


def test_kinds_of_several_sources(tmp_path: Path) -> None:
    """Special files of the directories above and of those that are taken whole."""
    written(tmp_path)
    os.mkfifo(tmp_path / "s" / "a" / "s" / "fifo")
    os.mkfifo(tmp_path / "s" / "pipe")
    done = run(tmp_path, ["a/s", "b/s", "pipe"])
    assert done.problems == []
    kinds = {path: os.lstat(tmp_path / "d" / path).st_mode >> 12 for path in ("pipe", "s/fifo")}
    assert set(kinds.values()) == {1}, (kinds, Kind.FIFO)


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    ("taken", "first"),
    [
        (("a/x", "b/x"), b"a/x"),
        (("b/y", "a/x", "b/x"), b"a/x"),
        (("b/y", "a/x", "b/"), b"a/x"),
        (("b/y", "b/", "a/x"), b"b/x"),
        (("a/y", "b/y", "c/x", "b/x", "a/x"), b"c/x"),
    ],
)
def test_the_first_of_a_name_counts(taken: tuple[str, ...], first: bytes, tmp_path: Path) -> None:
    """Also where another path in the directory of the second was named before."""
    source = tree({f"{directory}/{name}": directory.encode() for directory in "abc" for name in "xy"})
    write_tree(tmp_path / "s", source)
    found = syncing.command(
        "sync", "--no-catalog", *(f"{tmp_path}/s/{path}" for path in taken), f"{tmp_path}/d/"
    )
    assert found.code == 0
    assert read_tree(tmp_path / "d")[b"x"] == source[first]
    subprocess.run(["rsync", "-a", *(f"{tmp_path}/s/{path}" for path in taken), f"{tmp_path}/r/"], check=True)
    assert read_tree(tmp_path / "r")[b"x"] == source[first]
