"""--temp-dir: new content is in another directory until it is complete, and never in place before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileError
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.delayed_group import DistantReplacement
from rdc.files.root.root import Root, WritePolicy
from rdc.model.entries import Metadata
from rdc.model.sync import SyncOptions
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

LARGE = bytes(range(256)) * 2000
WANTED = tree(
    {
        "f": File(b"the new content", 0o4755),
        "closed": File(b"closed", 0o400),
        "large": LARGE + b"edit" + LARGE,
        "d/e/deep": b"deep",
        "d/f": File(b"another of that name", 0o666),
        "empty": b"",
        "holes": LARGE + bytes(300_000) + b"end",
    }
)
HELD = tree({"f": File(b"old", 0o600, 1), "large": LARGE * 2, "d/f": File(b"old, too", 0o644, 1)})
METADATA = Metadata(0o640, 10**18, os.getuid(), os.getgid())


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory on another file system than the tests'."""
    with tempfile.TemporaryDirectory(prefix="rdc-test-", dir="/dev/shm") as top:
        yield Path(top)


def place(name: str, tmp_path: Path, shared: Path) -> tuple[str, Path]:
    """A --temp-dir and where it is."""
    top = {"beside": tmp_path / "t", "within": tmp_path / "d" / "t", "elsewhere": shared}[name]
    top.mkdir(exist_ok=True, parents=True)
    return {"beside": "../t", "within": "t", "elsewhere": str(top)}[name], top


@pytest.mark.parametrize("name", ["beside", "within", "elsewhere"])
@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_all_arrives_and_nothing_is_left(way: Way, name: str, tmp_path: Path, shared: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    word, where = place(name, tmp_path, shared)
    run = run_sync(source, top, SyncOptions(temp_dir=os.fsencode(word), fsync=False), way=way)
    assert not run.problems
    assert list(where.iterdir()) == []
    found = {path: node for path, node in read_tree(top).items() if path != b"t"}
    assert describe(WANTED, found) == []
    assert not list(top.rglob(".rdc-*"))


@pytest.mark.parametrize("name", ["beside", "elsewhere"])
def test_content_is_there_until_it_is_complete(name: str, tmp_path: Path, shared: Path) -> None:
    top = write_tree(tmp_path / "d", HELD)
    _, where = place(name, tmp_path, shared)
    root = Root.open(os.fsencode(top)).having(writes=WritePolicy(distant=Root.open(os.fsencode(where))))
    copy = DistantReplacement(root, b"d/f", expected_size=len(LARGE))
    copy.write(LARGE)
    assert [path.stat().st_size for path in where.iterdir()] == [len(LARGE)]
    assert [path.name for path in (top / "d").iterdir()] == ["f"]
    landed: list[bytes] = []
    with CommitGroup(root, on_commit=landed.append) as group:
        group.add(copy, b"d/f", METADATA, False, root.identity(b"d/f"))
        assert list(where.iterdir()) == []
        assert (top / "d" / "f").read_bytes() == b"old, too"
    assert landed == [b"d/f"]
    assert (top / "d" / "f").read_bytes() == LARGE
    assert (top / "d" / "f").stat().st_mode & 0o7777 == 0o640
    root.release()


@pytest.mark.parametrize("name", ["beside", "elsewhere"])
def test_an_interrupted_file_goes_on_from_there(name: str, tmp_path: Path, shared: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"d/large": os.urandom(400_000)})), tmp_path / "d"
    (top / "d").mkdir(parents=True)
    word, where = place(name, tmp_path, shared)
    root = Root.open(os.fsencode(top)).having(writes=WritePolicy(distant=Root.open(os.fsencode(where))))
    for path, size in ((b"d/large", 300_000), (b"gone", 70_000)):
        copy = DistantReplacement(root, path)
        copy.write((source / "d" / "large").read_bytes()[:size])
        copy.keep()
    root.release()
    assert len(list(where.iterdir())) == 2
    run = run_sync(source, top, SyncOptions(temp_dir=os.fsencode(word), fsync=False))
    assert not run.problems
    assert run.done.reused_bytes > 200_000
    assert (top / "d" / "large").read_bytes() == (source / "d" / "large").read_bytes()
    assert list(where.iterdir()) == []


def test_a_missing_directory_changes_nothing(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    ended = command("sync", "-T", tmp_path / "none", f"{source}/", f"{top}/")
    assert (ended.code, len(ended.complaints)) == (ExitCode.FILE_IO, 1)
    assert describe(HELD, read_tree(top)) == []
    assert command("sync", "--temp-dir=", f"{source}/", f"{top}/").code == ExitCode.USAGE


def test_no_link_of_the_destination_leads_to_it(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    (tmp_path / "outside").mkdir()
    (top / "t").symlink_to(tmp_path / "outside")
    for word in ("t", "t/.", "./t"):
        ended = command("sync", f"--temp-dir={word}", f"{source}/", f"{top}/")
        assert ended.code == ExitCode.FILE_IO
    assert (top / "f").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("directory", "code"), [("../../outside", 5), ("/t", 0), ("../t", 0), ("../link", 11)]
)
def test_a_confined_peer_names_none_outside(directory: str, code: int, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    root = write_tree(tmp_path / "root", tree({"d/f": File(b"old", 0o644, 1), "t/x": b""}))
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    served = forced(tmp_path, f"--root={root}")
    ended = command("sync", "--no-catalog", "-e", served, f"--temp-dir={directory}", f"{source}/", "h:d/")
    assert ended.code == code, ended.err
    assert list((tmp_path / "outside").iterdir()) == []
    assert (root / "d" / "f").read_bytes() == (b"old" if code else b"the new content")


def test_what_cannot_be_moved_is_removed(tmp_path: Path) -> None:
    top, where = write_tree(tmp_path / "d", HELD), tmp_path / "t"
    where.mkdir()
    root = Root.open(os.fsencode(top)).having(writes=WritePolicy(distant=Root.open(os.fsencode(where))))
    copy = DistantReplacement(root, b"d/f")
    copy.write(b"new")
    shutil.rmtree(top / "d")
    with pytest.raises(FileError):
        copy.seal(METADATA, owner=False)
    assert list(where.iterdir()) == []
    root.release()
