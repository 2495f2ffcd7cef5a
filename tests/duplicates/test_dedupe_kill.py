"""kill -9 before every step: every path keeps its content and metadata, and a second run finishes the
work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from rdc.duplicates.journal import read_journal
from rdc.errors import FileError
from tests.support.running.deduping import Seen, blob, dedupe, seen, write_duplicates
from tests.support.running.killed_calls import CallKiller, call_killer
from tests.support.running.killed_dedupe import killed_at, leftovers
from tests.support.trees.loop_images import free_bytes

_read, _write = os.read, os.write
"""The originals, before a process counts its calls."""


class Scene:
    """A tree with duplicates, built anew for each kill."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.number = 0
        self.top = place
        self.journal = place
        self.wanted: dict[str, Seen] = {}
        self.renew()

    def renew(self) -> None:
        self.number += 1
        self.top = self.place / f"tree{self.number}"
        self.top.mkdir()
        self.wanted = write_duplicates(self.top)
        self.journal = self.place / f"journal{self.number}"

    def look(self) -> None:
        """Checks that every path is unchanged and that any other file beside them is a leftover of rdc."""
        found = seen(self.top)
        for path in leftovers(self.top):
            del found[str(path.relative_to(self.top))]
        assert found == self.wanted

    def inodes(self) -> set[int]:
        return {os.stat(self.top / path).st_ino for path in self.wanted}


def kill_everywhere(
    scene: Scene, words: Callable[[], list[str | Path]], finish: Callable[[], None], *, every: int = 1
) -> int:
    """Kills before each step, or before some of them, until a run completes. Returns how often leftovers were
    found."""
    littered = 0
    for at in count(0, every):
        scene.renew()
        killed = killed_at(at, *words())
        scene.look()
        if not killed:
            assert at >= 20
            break
        littered += bool(leftovers(scene.top))
        finish()
        scene.look()
        assert leftovers(scene.top) == []
    return littered


def test_hard_links(linking: Path) -> None:
    scene = Scene(linking)

    def words() -> list[str | Path]:
        return ["--hardlink", "--apply", "--journal", scene.journal, scene.top]

    def finish() -> None:
        scene.journal = scene.journal.with_suffix(".second")
        run = dedupe(*words())
        assert run.code == 0, run
        assert len(scene.inodes()) == 4

    # Every step is tested on one file system; on the others, those steps that they answer differently.
    assert kill_everywhere(scene, words, finish, every=1 if linking.parent.name == "ext4" else 4) > 3


@pytest.fixture(scope="module")
def killer() -> Iterator[CallKiller]:
    with call_killer() as started:
        yield started


def test_hard_links_killed_at_any_call(ext4: Path, killer: CallKiller) -> None:
    """As above, in the C code that changes many names at a time as well. What the kill leaves is cleared by
    the next run, or by the undo."""
    scene = Scene(ext4)
    littered = 0
    for at in count():
        scene.renew()
        killed = killer(at, "--hardlink", "--apply", "--journal", scene.journal, scene.top)
        scene.look()
        littered += bool(leftovers(scene.top))
        if not killed:
            break
        if at % 2:
            again = scene.journal.with_suffix(".second")
            run = dedupe("--hardlink", "--apply", "--journal", again, scene.top)
            assert run.code == 0, run
            assert len(scene.inodes()) == 4
        elif scene.journal.exists() and scene.journal.stat().st_size:
            run = dedupe("--undo", scene.journal)
            assert run.code == 0, run
            assert len(scene.inodes()) == len(scene.wanted)
        scene.look()
        assert leftovers(scene.top) == []
    assert littered > 10


def test_undo_killed_at_any_call(ext4: Path, killer: CallKiller) -> None:
    scene = Scene(ext4)
    for at in count():
        scene.renew()
        assert dedupe("--hardlink", "--apply", "--journal", scene.journal, scene.top).code == 0
        killed = killer(at, "--undo", scene.journal)
        scene.look()
        run = dedupe("--undo", scene.journal)
        assert run.code == 0, run
        assert len(scene.inodes()) == len(scene.wanted)
        scene.look()
        assert leftovers(scene.top) == []
        if not killed:
            assert at > 40
            break


def test_shared_blocks(sharing: Path) -> None:
    scene = Scene(sharing)

    def words() -> list[str | Path]:
        return ["--apply", scene.top]

    def finish() -> None:
        run = dedupe(*words())
        assert run.code == 0, run
        assert dedupe(scene.top).won == 0
        assert len(scene.inodes()) == len(scene.wanted)

    assert kill_everywhere(scene, words, finish, every=2) == 0


def test_parts_and_what_is_left_of_their_extents(btrfs: Path) -> None:
    """The rest of an extent is written to a temporary file on the way."""
    contents = {"image": blob(1, 600_000)}
    contents["edited"] = contents["image"][:300_000] + b"edited" + contents["image"][300_006:]
    littered = 0
    for at in count():
        place = btrfs / f"tree{at}"
        place.mkdir()
        for name, content in contents.items():
            (place / name).write_bytes(content)
        free = free_bytes(btrfs)
        killed = killed_at(at, "--chunks", "--apply", place)
        littered += bool(leftovers(place))
        for name, content in contents.items():
            assert (place / name).read_bytes() == content
        if not killed:
            break
        assert dedupe("--chunks", "--apply", place).code == 0
        assert sorted(os.listdir(place)) == sorted(contents)
        # No blocks stay allocated because of the kill.
        assert free_bytes(btrfs) - free > 550_000
    assert littered > 2
    assert at > 15


def test_undo(ext4: Path) -> None:
    scene = Scene(ext4)

    def words() -> list[str | Path]:
        run = dedupe("--hardlink", "--apply", "--journal", scene.journal, scene.top)
        assert run.code == 0, run
        return ["--undo", scene.journal]

    def finish() -> None:
        run = dedupe("--undo", scene.journal)
        assert run.code == 0, run
        assert len(scene.inodes()) == len(scene.wanted)
        assert leftovers(scene.top) == []

    kill_everywhere(scene, words, finish, every=2)


def test_the_journal_tells_of_every_link_that_was_made(ext4: Path) -> None:
    """After a kill at any step, every name that leads to another file than before is in the journal."""
    scene = Scene(ext4)
    told = 0
    for at in count(0, 3):
        scene.renew()
        before = {path: os.stat(scene.top / path).st_ino for path in scene.wanted}
        killed = killed_at(at, "--hardlink", "--apply", "--journal", scene.journal, scene.top)
        linked = {path for path, inode in before.items() if os.stat(scene.top / path).st_ino != inode}
        if linked:
            records = read_journal(os.fsencode(scene.journal))
            assert linked <= {os.fsdecode(record.path) for record in records.changes}
            told += 1
        if not killed:
            break
    assert told > 5


class Writer:
    """Opens a file for writing when told, right before the kill. The file is the one that was found, as for a
    program that looked up its name earlier."""

    def __init__(self, found: int) -> None:
        self._found = found
        self._asked, self._ask = os.pipe()
        self._told, self._tell = os.pipe()
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def ask(self) -> None:
        """Called in the process that will be killed. Returns once the writer waits in open(2), or writes."""
        _write(self._ask, b"w")
        _read(self._told, 1)

    def _wait(self) -> None:
        if _read(self._asked, 1) == b"w":
            writing = threading.Thread(target=self._begin)
            writing.start()
            time.sleep(0.005)
            _write(self._tell, b"x")
            writing.join()

    def _begin(self) -> None:
        fd = os.open(f"/proc/self/fd/{self._found}", os.O_WRONLY | os.O_APPEND)
        _write(fd, b" and more")
        os.close(fd)

    def finish(self) -> None:
        _write(self._ask, b"n")
        self._thread.join()
        for fd in (self._asked, self._ask, self._told, self._tell):
            os.close(fd)


def test_a_writer_that_waits_when_the_kill_comes(ext4: Path) -> None:
    """The writer continues once the kill has ended the lease, in a file that may have been displaced. The
    next run gives the name back to that file."""
    restored = 0
    for at in count():
        place = ext4 / f"tree{at}"
        place.mkdir()
        for name in ("kept", "old"):
            (place / name).write_bytes(b"content")
            os.utime(place / name, ns=(1, 1))
        found = os.open(place / "old", os.O_PATH)
        writer = Writer(found)
        journal = ext4 / f"journal{at}"
        killed = killed_at(at, "--hardlink", "--apply", "--journal", journal, place, before=writer.ask)
        writer.finish()
        displaced = not os.path.samestat(os.stat(place / "old"), os.fstat(found))
        gone = os.fstat(found).st_nlink == 0
        os.close(found)
        if not killed:
            break
        run = dedupe("--hardlink", "--apply", "--journal", f"{journal}.second", place)
        assert run.code == 0, run
        # Gone: he found it before it was replaced, and came after all was done.
        assert (place / "old").read_bytes() == (b"content" if gone else b"content and more"), at
        assert (place / "kept").read_bytes() == b"content"
        assert leftovers(place) == []
        restored += displaced and not gone
    assert restored > 2


def test_leftovers_that_nobody_can_decide_about_stay(ext4: Path) -> None:
    for at in count():
        place = ext4 / f"tree{at}"
        place.mkdir()
        for name in ("kept", "old"):
            (place / name).write_bytes(b"content")
            os.utime(place / name, ns=(1, 1))
        assert killed_at(at, "--hardlink", "--apply", "--journal", ext4 / f"journal{at}", place)
        if any(path.read_bytes() and os.stat(path).st_nlink == 1 for path in leftovers(place)):
            break
    # Both files were written to since, the one that has the name last.
    leftovers(place)[0].write_bytes(b"one")
    (place / "old").write_bytes(b"another")
    os.utime(place / "old", ns=(1 << 62, 1 << 62))
    run = dedupe("--apply", "--hardlink", "--journal", ext4 / "last", place)
    assert run.code == 0
    assert [path.read_bytes() for path in leftovers(place)] == [b"one"]
    assert any("left by an interrupted run" in error["message"] for error in run.of("error"))
    assert (place / "old").read_bytes() == b"another"


def test_a_journal_that_was_cut_short(ext4: Path) -> None:
    scene = Scene(ext4)
    assert dedupe("--hardlink", "--apply", "--journal", scene.journal, scene.top).code == 0
    whole = scene.journal.read_bytes()
    lines = whole.count(b"\n")
    for cut in range(0, len(whole), 7):
        scene.journal.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        if complete:
            assert len(read_journal(os.fsencode(scene.journal)).changes) <= complete - 1 < lines
        else:
            with pytest.raises(FileError, match="line 1"):
                read_journal(os.fsencode(scene.journal))
