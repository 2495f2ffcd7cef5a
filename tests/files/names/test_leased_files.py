"""Many files under leases at once: the C part sees what LeasedFile sees, and leaves what has changed."""

from __future__ import annotations

import os
import random
import subprocess
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rdc.errors import FileError
from rdc.files import _files
from rdc.files.names.leased_files import LeasedFile, LeasedFiles, Outcome, Place, Step
from rdc.files.names.name_change import Delete, Link, displaced_name
from rdc.files.root.root import Root
from rdc.lean.records import replace as change_record
from tests.support.trees.loop_images import settle
from tests.support.trees.saved_files import replace

CONTENT = bytes(range(256)) * 300
TIME = 1_600_000_000_123_456_789


class Scene:
    """`kept`, and `old` in a directory of its own, equal in everything."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "d").mkdir()
        self.kept, self.old = top / "kept", top / "d" / "old"
        for path in (self.kept, self.old):
            path.write_bytes(CONTENT)
            for number in range(3):
                os.setxattr(path, f"user.attribute{number}", bytes([number]) * 50 * number)
            os.utime(path, ns=(TIME, TIME))
        self.root = Root.open(os.fsencode(top))
        places = [self.place(b"kept"), self.place(b"d/old")]
        self.leased = LeasedFiles(places)
        facts = self.leased.facts(1)
        self.step = Step(
            *(places[1].directory, b"old", displaced_name(b"old", facts.size, facts.metadata), 1, 0),
            *(places[0].directory, b"kept"),
            first=True,
        )
        self.displaced = top / "d" / os.fsdecode(self.step.displaced)

    def place(self, path: bytes) -> Place:
        directory, name = self.root.locate(path, fresh=True)
        return Place(self.root, path, directory, name)

    def single(self, exchange: bool) -> Link | Delete:
        files = self.leased.file(1), self.leased.file(0)
        return (Link if exchange else Delete)(self.root, b"d/old", *files)


@pytest.fixture
def scene(linking: Path) -> Iterator[Scene]:
    made = Scene(linking)
    with made.leased:
        yield made


def ask_to_write(path: Path) -> None:
    with pytest.raises(BlockingIOError):
        os.open(path, os.O_WRONLY | os.O_NONBLOCK)


def test_facts_and_attributes_are_those_of_one_file(linking: Path) -> None:
    rng = random.Random(1)
    paths = []
    for number in range(20):
        path = linking / f"file{number}"
        path.write_bytes(rng.randbytes(rng.randrange(10_000)))
        for attribute in range(rng.randrange(4)):
            os.setxattr(path, f"user.{attribute}", rng.randbytes(rng.randrange(200)))
        path.chmod(rng.choice((0o644, 0o4755, 0o600)))
        os.utime(path, ns=(TIME + number, -TIME - number))
        paths.append(path)
    os.link(paths[3], linking / "again")
    root = Root.open(os.fsencode(linking))
    top = root.directory(b"")
    names = [os.fsencode(path.name) for path in paths]
    with LeasedFiles([Place(root, name, top, name) for name in names]) as leased:
        for number, name in enumerate(names):
            with LeasedFile(root, name) as one:
                assert leased.facts(number) == one.facts
                assert leased.attributes(number) == one.attributes
                assert leased.file(number).metadata == one.metadata
            assert leased.is_plain(number)


def test_files_with_too_many_attributes_and_no_files_are_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_bytes(CONTENT)
    open_file = (tmp_path / "open").open("wb")
    root = Root.open(os.fsencode(tmp_path))
    top = root.directory(b"")
    names = [b"directory", b"fifo", b"link", b"gone", b"open", b"file"]
    with open_file, LeasedFiles([Place(root, name, top, name) for name in names]) as leased:
        for number, name in enumerate(names[:-1]):
            with pytest.raises(FileError) as raised:
                leased.facts(number)
            with pytest.raises(FileError) as alone:
                LeasedFile(root, name)
            assert str(raised.value) == str(alone.value)
        assert leased.facts(5).size == len(CONTENT)


def test_shared_blocks_are_not_plain(sharing: Path) -> None:
    (sharing / "one").write_bytes(CONTENT)
    subprocess.run(["cp", "--reflink=always", sharing / "one", sharing / "two"], check=True)
    settle(sharing)
    root = Root.open(os.fsencode(sharing))
    with LeasedFiles([Place(root, name, root.directory(b""), name) for name in (b"one", b"two")]) as leased:
        assert not leased.is_plain(0)
        assert not leased.is_plain(1)


@pytest.mark.parametrize("digest", [False, True])
@pytest.mark.parametrize("size", [0, 1, 65_536, 70_000, 3_000_000])
def test_contents_are_compared(tmp_path: Path, size: int, digest: bool) -> None:
    content = random.Random(size).randbytes(size)
    others = [content, content + b"x", content[:-1], content[:-1] + b"?", content]
    names = [b"kept", *(b"%d" % number for number in range(len(others)))]
    for name, one in zip(names, [content, *others], strict=True):
        (tmp_path / os.fsdecode(name)).write_bytes(one)
    root = Root.open(os.fsencode(tmp_path))
    with LeasedFiles([Place(root, name, root.directory(b""), name) for name in names]) as leased:
        ask_to_write(tmp_path / "4")
        name, equal = leased.compare(0, range(1, 6), digest=digest)
        found = [one if isinstance(one, bool) else "error" for one in equal]
        assert found[:4] == [one == content for one in others[:4]]
        # Somebody waits to write to the last; nothing is read of an empty file.
        assert found[4] in (("error",) if size else ("error", True))
        assert bool(name) == digest
        if digest:
            assert name == leased.compare(1, [0], digest=True)[0]


@pytest.mark.parametrize("exchange", [False, True])
def test_a_name_is_taken_and_its_file_removed(scene: Scene, exchange: bool) -> None:
    assert scene.leased.displace([scene.step], exchange=exchange) == [Outcome.DONE]
    assert scene.displaced.read_bytes() == CONTENT
    assert scene.old.exists() == exchange
    assert not exchange or scene.old.samefile(scene.kept)
    assert scene.leased.remove([scene.step], exchange=exchange) == [Outcome.DONE]
    assert not scene.displaced.exists()
    assert scene.kept.read_bytes() == CONTENT


BEFORE: dict[str, Callable[[Scene], object]] = {
    "another file": lambda scene: replace(scene.old, CONTENT),
    "gone": lambda scene: scene.old.unlink(),
    "a writer": lambda scene: ask_to_write(scene.old),
    "a writer of the other": lambda scene: ask_to_write(scene.kept),
    "another mode": lambda scene: scene.old.chmod(0o600),
    "another mode of the other": lambda scene: scene.kept.chmod(0o600),
    "another owner": lambda scene: os.chown(scene.old, 12, -1),
    "another time": lambda scene: os.utime(scene.old, ns=(TIME, TIME + 1)),
    "an attribute more": lambda scene: os.setxattr(scene.old, "user.more", b""),
    "an attribute less": lambda scene: os.removexattr(scene.old, "user.attribute1"),
    "another value": lambda scene: os.setxattr(scene.old, "user.attribute2", b"?" * 100),
    "another value at the other": lambda scene: os.setxattr(scene.kept, "user.attribute2", b"?" * 100),
}


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("change", BEFORE)
def test_what_changed_before_is_not_touched(scene: Scene, change: str, exchange: bool) -> None:
    BEFORE[change](scene)
    before = {path: os.stat(path).st_ino for path in scene.top.rglob("*")}
    assert scene.leased.displace([scene.step], exchange=exchange) == [Outcome.UNTOUCHED]
    assert {path: os.stat(path).st_ino for path in scene.top.rglob("*")} == before
    # It is what the object for one name says, too.
    with pytest.raises(FileError):
        scene.single(exchange).depart(first=True)
    assert {path: os.stat(path).st_ino for path in scene.top.rglob("*")} == before


def test_the_last_copy_stays(scene: Scene) -> None:
    replace(scene.kept, b"another")
    assert scene.leased.displace([scene.step], exchange=False) == [Outcome.UNTOUCHED]
    assert scene.old.read_bytes() == CONTENT


def test_a_name_that_is_taken_is_left(scene: Scene) -> None:
    scene.displaced.write_bytes(b"taken")
    for exchange in (False, True):
        assert scene.leased.displace([scene.step], exchange=exchange) == [Outcome.UNTOUCHED]
    assert scene.displaced.read_bytes() == b"taken"
    assert scene.old.read_bytes() == CONTENT


def test_a_ctime_counts_for_the_first_name_alone(scene: Scene) -> None:
    os.link(scene.old, scene.top / "more")
    assert scene.leased.displace([scene.step], exchange=False) == [Outcome.UNTOUCHED]
    later = change_record(scene.step, first=False)
    assert scene.leased.displace([later], exchange=False) == [Outcome.DONE]


AFTER = {
    name: change
    for name, change in BEFORE.items()
    if name not in ("another file", "gone") and "other" not in name
}


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("change", AFTER)
def test_what_changed_afterwards_is_not_removed(scene: Scene, change: str, exchange: bool) -> None:
    assert scene.leased.displace([scene.step], exchange=exchange) == [Outcome.DONE]
    old, scene.old = scene.old, scene.displaced
    AFTER[change](scene)
    inode = os.stat(scene.displaced).st_ino
    assert scene.leased.remove([scene.step], exchange=exchange) == [Outcome.UNTOUCHED]
    with pytest.raises(FileError):
        scene.single(exchange).finish()
    # The object has given the name back.
    assert os.stat(old).st_ino == inode
    assert not scene.displaced.exists()


def test_columns_that_do_not_fit() -> None:
    one = array("i", [0])
    number = array("I", [0])
    facts = bytes(128)
    good = (one, b"a\0", b"b\0", number, number, one, b"c\0", one, facts, b"", b"\1")
    for at, wrong in (
        *(
            (0, b""),
            (0, b"123"),
            (1, b"a"),
            (1, b"a\0b\0"),
            (2, b""),
            (3, array("I", [1])),
            (4, array("I", [9])),
        ),
        *((5, b""), (6, b"c"), (7, b"1"), (8, bytes(127)), (8, bytes(256)), (10, b""), (10, b"\1\1")),
        (8, bytes(120) + (1).to_bytes(8, "little")),
        (8, bytes(120) + b"\xff" * 8),
    ):
        columns = [*good[:at], wrong, *good[at + 1 :]]
        for call in (_files.displace_files, _files.remove_displaced):
            with pytest.raises(ValueError, match="do not fit"):
                call(False, *columns)
    for directories, names in ((b"1", b""), (one, b"a"), (one, b"a\0b\0")):
        with pytest.raises(ValueError, match="do not fit"):
            _files.lease_files(directories, names)
    with pytest.raises(ValueError, match="do not fit"):
        _files.compare_files(b"1", b"")
