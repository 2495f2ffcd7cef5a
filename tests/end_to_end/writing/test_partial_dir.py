"""--partial-dir: where the part of an unfinished file waits, and what may be taken for one."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.base.paths import PARTS_NAME
from rdc.files.replace.partial_directory import PartialDirectory
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root, WritePolicy
from rdc.lean.records import replace
from rdc.model.options import KeepUndo
from rdc.model.sync import SyncOptions
from rdc.undoing.keeper import SyncUndo
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import read_tree, tree, write_tree
from tests.support.undo.undo_runs import read_beside, undone

CONTENT = os.urandom(400_000)
RECORD = os.fsdecode(PARTS_NAME)
Change = Callable[[Path], None]
WANTED = tree({"d/large": CONTENT, "d/other": b"small"})


def options(word: str) -> SyncOptions:
    return SyncOptions(partial_dir=os.fsencode(word), delete=True, fsync=False)


def interrupted(top: Path, word: str, tmp_path: Path, size: int = 300_000) -> Path:
    """What an interrupted run leaves of d/large. Returns the part."""
    (top / "d").mkdir(parents=True, exist_ok=True)
    (top / "d" / "other").write_bytes(b"small")
    root = Root.open(os.fsencode(top))
    absolute = Root.open(os.fsencode(word), create=True, mode=0o700) if word.startswith("/") else None
    partials = PartialDirectory(root, name=b"" if absolute else os.fsencode(word), top=absolute)
    root = root.having(writes=WritePolicy(partials=partials))
    copy = Replacement(root, b"d/large")
    copy.write(CONTENT[:size])
    copy.keep()
    root.release()
    return Path(word, "large") if word.startswith("/") else top / "d" / word / "large"


def word_of(name: str, tmp_path: Path) -> str:
    return str(tmp_path / "parts") if name == "absolute" else name


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("name", ["absolute", ".parts"])
def test_without_a_rename_that_replaces_nothing(
    name: str, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS, many file systems in user space and systems that are not Linux have none."""

    def refused(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("rdc.files.base.taking_names.rename_no_replace_between", refused)
    top, word = tmp_path / "d", word_of(name, tmp_path)
    place = Path(word, "large") if name == "absolute" else top / "d" / word / "large"
    if taken:
        place.parent.mkdir(parents=True)
        place.write_bytes(b"somebody's own")
    part = interrupted(top, word, tmp_path)
    assert part == place
    assert part.read_bytes() == (b"somebody's own" if taken else CONTENT[:300_000])
    left = [found for found in os.listdir(top / "d") if found not in {"other", name}]
    assert len(left) == taken


@pytest.mark.parametrize("name", ["absolute", ".parts"])
@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
def test_the_next_run_goes_on_from_there(way: Way, name: str, tmp_path: Path) -> None:
    source, top, word = write_tree(tmp_path / "s", WANTED), tmp_path / "d", word_of(name, tmp_path)
    part = interrupted(top, word, tmp_path)
    assert part.read_bytes() == CONTENT[:300_000]
    assert not list(top.rglob(".rdc-*"))
    assert stat.S_IMODE(part.parent.stat().st_mode) == 0o700
    run = run_sync(source, top, options(word), way=way)
    assert not run.problems
    assert run.done.reused_bytes > 200_000
    assert read_tree(top).keys() == WANTED.keys()
    assert (top / "d" / "large").read_bytes() == CONTENT
    assert not part.exists()
    assert part.parent.exists() is (name == "absolute")


@pytest.mark.needs("rsync")
def test_rsync_s_part_is_taken_up(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), tmp_path / "d"
    part = interrupted(top, ".parts", tmp_path)
    run = run_sync(source, top, options(".parts"))
    assert run.done.reused_bytes > 200_000 and not part.exists()
    (top / "d" / "large").unlink()
    part = interrupted(top, ".parts", tmp_path)
    subprocess.run(["rsync", "-a", "--delete", "--partial-dir=.parts", f"{source}/", top], check=True)
    assert (top / "d" / "large").read_bytes() == CONTENT and not part.exists()


def test_it_takes_no_part_and_stays(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", WANTED)
    for place in (source, top):
        (place / "d" / ".parts").mkdir()
    (source / "d" / ".parts" / "sent").touch()
    (top / "d" / ".parts" / "mine").touch()
    for more in (False, True):
        chosen = SyncOptions(partial_dir=b".parts", delete=True, delete_excluded=more, fsync=False)
        assert not run_sync(source, top, chosen).problems
        assert [path.name for path in (top / "d" / ".parts").iterdir()] == ["mine"]


def test_the_longer_part_stays(tmp_path: Path) -> None:
    top = tmp_path / "d"
    for size, kept in ((200_000, 200_000), (100_000, 200_000), (300_000, 300_000), (1_000, 300_000)):
        assert interrupted(top, ".parts", tmp_path, size).stat().st_size == kept
        assert not list(top.rglob(".rdc-*"))


def test_no_link_leads_to_it(tmp_path: Path) -> None:
    source, top, outside = write_tree(tmp_path / "s", WANTED), tmp_path / "d", tmp_path / "outside"
    for path in (outside, top / "d"):
        path.mkdir(parents=True)
    (outside / "large").write_bytes(CONTENT)
    (top / "d" / ".parts").symlink_to(outside)
    interrupted(top, ".parts", tmp_path)
    assert [path.name for path in outside.iterdir()] == ["large"]
    left = [path.stat().st_size for path in top.rglob(".rdc-*")]
    assert left == [300_000]
    run = run_sync(source, top, SyncOptions(partial_dir=b".parts", fsync=False))
    assert not run.problems
    assert (top / "d" / "large").read_bytes() == (outside / "large").read_bytes() == CONTENT
    assert run.done.reused_bytes < 350_000


@pytest.mark.parametrize("what", ["link", "linked", "directory", "foreign"])
def test_only_a_part_counts(what: str, tmp_path: Path) -> None:
    source, top, mine = write_tree(tmp_path / "s", WANTED), tmp_path / "d", tmp_path / "mine"
    parts = top / "d" / ".parts"
    parts.mkdir(parents=True)
    mine.write_bytes(CONTENT)
    if what == "link":
        (parts / "large").symlink_to(mine)
    elif what == "linked":
        os.link(mine, parts / "large")
    elif what == "directory":
        (parts / "large").mkdir()
    else:
        if os.geteuid() != 0:
            pytest.skip("a file of another user needs root")
        (parts / "large").write_bytes(CONTENT)
        os.chown(parts / "large", 4242, 4242)
        parts.chmod(0o1777)
    interrupted(top, ".parts", tmp_path)
    run = run_sync(source, top, options(".parts"))
    assert not run.problems
    assert (top / "d" / "large").read_bytes() == mine.read_bytes() == CONTENT
    assert (parts / "large").lstat()


@pytest.mark.parametrize("word", ["..", ".", "a/b", ""])
def test_what_is_no_directory_below_is_refused(word: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    ended = command("sync", f"--partial-dir={word}", f"{source}/", f"{tmp_path}/d/")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)
    ended = command("sync", "--partial-dir=p", "--inplace", f"{source}/", f"{tmp_path}/d/")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)


def test_a_confined_peer_names_none_outside(tmp_path: Path) -> None:
    source, root = write_tree(tmp_path / "s", WANTED), tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    served = forced(tmp_path, f"--root={root}")
    word = f"--partial-dir={tmp_path}/outside/parts"
    ended = command("sync", "--no-catalog", "-e", served, word, f"{source}/", "h:d/")
    assert ended.code == ExitCode.FILE_IO
    ended = command("sync", "--no-catalog", "-e", served, "--partial-dir=/p", f"{source}/", "h:d/")
    assert ended.code == 0 and (root / "p").is_dir()
    assert list((tmp_path / "outside").iterdir()) == []


# What rdc did not put there


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _edit(path: Path) -> None:
    """In place, with the same size."""
    with path.open("r+b") as file:
        file.write(b"mine")
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))


def _replace(path: Path) -> None:
    """With the same size and time, by another file."""
    found = path.stat()
    (path.parent / "aside").write_bytes(b"m" * found.st_size)
    os.utime(path.parent / "aside", ns=(found.st_mtime_ns,) * 2)
    (path.parent / "aside").rename(path)


def _copy(path: Path) -> None:
    path.with_name("copy").write_bytes(path.read_bytes())
    path.with_name("copy").rename(path)


def _link(path: Path) -> None:
    os.link(path, path.with_name("another name"))


def _damaged(path: Path) -> None:
    record = path.with_name(RECORD)
    record.write_bytes(record.read_bytes()[:-9])


def _open_to_all(path: Path) -> None:
    path.with_name(RECORD).chmod(0o646)


def _without_record(path: Path) -> None:
    path.with_name(RECORD).unlink()


def _of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a file of another user needs root")
    os.chown(path.with_name(RECORD), 4242, 4242)


def _linked(path: Path) -> None:
    os.link(path.with_name(RECORD), path.with_name("second"))


def _moved(path: Path) -> None:
    """The directory is another one by now, which somebody made of the first."""
    path.parent.rename(path.parent.with_name("before"))
    subprocess.run(["cp", "-a", path.parent.with_name("before"), path.parent], check=True)


MINE = [
    _append,
    _edit,
    _replace,
    _copy,
    _link,
    _damaged,
    _open_to_all,
    _without_record,
    _of_another,
    _linked,
    _moved,
]


@pytest.mark.parametrize("name", ["absolute", ".parts"])
@pytest.mark.parametrize("change", MINE)
def test_only_a_recorded_part_is_removed_or_replaced(change: Change, name: str, tmp_path: Path) -> None:
    source, top, word = write_tree(tmp_path / "s", WANTED), tmp_path / "d", word_of(name, tmp_path)
    part = interrupted(top, word, tmp_path)
    change(part)
    held = part.read_bytes()
    interrupted(top, word, tmp_path, 350_000)
    assert part.read_bytes() == held
    run = run_sync(source, top, options(word))
    assert not run.problems
    assert (top / "d" / "large").read_bytes() == CONTENT
    assert part.read_bytes() == held


@pytest.mark.parametrize("name", ["absolute", ".parts"])
@pytest.mark.parametrize("size", [0, 10, 100_000, 300_000, 400_000])
def test_a_file_of_the_user_is_no_part(size: int, name: str, tmp_path: Path) -> None:
    """It may serve as a base."""
    source, top, word = write_tree(tmp_path / "s", WANTED), tmp_path / "d", word_of(name, tmp_path)
    place = Path(word) if name == "absolute" else top / "d" / name
    place.mkdir(parents=True)
    (place / "large").write_bytes(CONTENT[:size])
    interrupted(top, word, tmp_path)
    for _ in range(2):
        assert not run_sync(source, top, options(word)).problems
        assert (place / "large").read_bytes() == CONTENT[:size]
        assert [path.name for path in place.iterdir()] == ["large"]


def test_a_directory_of_the_user_stays(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), tmp_path / "d"
    (top / "d/.parts").mkdir(parents=True)
    part = interrupted(top, ".parts", tmp_path)
    assert part.exists()
    assert not run_sync(source, top, options(".parts")).problems
    assert list((top / "d/.parts").iterdir()) == []


def test_parts_of_several_files(tmp_path: Path) -> None:
    top = tmp_path / "d"
    root = Root.open(os.fsencode(top), create=True)
    root = root.having(writes=WritePolicy(partials=PartialDirectory(root, name=b".parts")))
    for name in (b"one", b"two", b"\xff\nthree"):
        copy = Replacement(root, name)
        copy.write(CONTENT)
        copy.keep()
    (top / ".parts/mine").write_bytes(b"mine")
    partials = PartialDirectory(root, name=b".parts")
    for name in (b"one", b"\xff\nthree", b"mine"):
        assert partials.of(name) == b"//" + name
    partials.remove()
    assert sorted(os.listdir(top / ".parts")) == [RECORD, "mine", "two"]
    (top / ".parts/mine").unlink()
    assert partials.of(b"two")
    partials.remove([b"//two"])
    assert os.listdir(top) == []
    root.release()


def test_deleting_a_directory_takes_its_record_along(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"other": b"o"})), tmp_path / "d"
    interrupted(top, ".parts", tmp_path)
    run = run_sync(source, top, SyncOptions(delete=True, fsync=False))
    assert not run.problems
    assert os.listdir(top) == ["other"]


def test_an_undo_brings_all_back(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), tmp_path / "d"
    (top / "d/.parts").mkdir(parents=True)
    (top / "d/.parts/large").write_bytes(b"mine" * 50_000)
    (top / "d/other").write_bytes(b"old")
    before = read_beside(top)
    chosen = SyncOptions(partial_dir=b".parts", keep_undo=KeepUndo(days=1), fsync=False)
    assert not run_sync(source, top, chosen).problems
    assert undone(top).left_alone == []
    assert read_beside(top) == before


@pytest.mark.parametrize("made", [False, True])
def test_an_undo_of_an_interrupted_run_takes_parts_along(made: bool, tmp_path: Path) -> None:
    top = tmp_path / "d"
    (top / "d/.parts" if made else top / "d").mkdir(parents=True)
    before = read_beside(top)
    root = Root.open(os.fsencode(top))
    root = root.having(writes=WritePolicy(undo=SyncUndo(root, KeepUndo(days=1), fsync=False)))
    root = root.having(writes=replace(root.writes, partials=PartialDirectory(root, name=b".parts")))
    copy = Replacement(root, b"d/large")
    copy.write(CONTENT)
    copy.keep()
    root.release()
    assert (top / "d/.parts/large").exists()
    assert undone(top).left_alone == []
    if not made:
        assert read_beside(top) == before
