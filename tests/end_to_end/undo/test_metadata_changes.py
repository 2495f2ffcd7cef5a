"""An entry of which a sync changed only the metadata gets them back only if nobody has touched it since."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.base.paths import UNDO_NAME
from rdc.lean.records import replace
from rdc.model.options import KeepUndo
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import File, tree, write_tree
from tests.support.undo.stepped_child import ended_at_step
from tests.support.undo.undo_runs import undone
from tests.support.undo.undone_sync import census, unlike

KEEPING = SyncOptions(delete=True, fsync=False, keep_undo=KeepUndo(days=30), hard_links=True, xattrs=True)
CONTENT = b"#!/bin/sh\necho a good tool\n"
EVIL = b"#!/bin/sh\necho an EVIL one\n"
STORE = os.fsdecode(UNDO_NAME)
LATER = 10**18 + 10**9

Change = Callable[[Path], None]


def _sources(place: Path) -> tuple[Path, Path]:
    """A destination, and a source that differs in metadata alone."""
    files = {name: File(CONTENT, 0o4755) for name in ("mode", "owner", "both")}
    files |= {"time": File(CONTENT, 0o644), "attribute": File(CONTENT, 0o755), "twin": File(CONTENT, 0o755)}
    source, top = write_tree(place / "s", tree(files)), write_tree(place / "d", tree(files))
    for name in ("mode", "both"):
        (source / name).chmod(0o755)
    if os.geteuid() == 0:
        for name in ("owner", "both"):
            os.chown(source / name, 65534, 65534)
    os.utime(source / "time", ns=(LATER, LATER))
    os.setxattr(source / "attribute", "user.of", b"source")
    os.setxattr(top / "attribute", "user.of", b"destination")
    (source / "twin").chmod(0o700)
    for place_ in (source, top):
        os.link(place_ / "twin", place_ / "twin2")
    return source, top


CHANGED = ["mode", "both", "time", "attribute", "twin"] + (["owner"] if os.geteuid() == 0 else [])


def _written_to(path: Path) -> None:
    found = path.stat()
    with path.open("r+b") as file:
        file.write(EVIL)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _truncated_and_filled(path: Path) -> None:
    found = path.stat()
    path.write_bytes(EVIL)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _renamed_and_back(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.with_name("elsewhere").rename(path)


def _linked(path: Path) -> None:
    os.link(path, path.with_name("another name"))


def _mode_and_back(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(0o600)
    path.chmod(mode)


def _written_to_through_another_name(path: Path) -> None:
    os.link(path, path.parent.parent / "outside")
    _written_to(path.parent.parent / "outside")
    (path.parent.parent / "outside").unlink()


def _evil(top: Path) -> list[Path]:
    return [path for path in top.glob("*") if path.is_file() and path.read_bytes() == EVIL]


TOUCHES = [
    _written_to, _truncated_and_filled, _renamed_and_back, _linked, _mode_and_back,
    _written_to_through_another_name,
]  # fmt: skip


@pytest.mark.parametrize("touch", TOUCHES)
@pytest.mark.parametrize("name", CHANGED)
def test_what_was_touched_stays(name: str, touch: Change, tmp_path: Path) -> None:
    source, top = _sources(tmp_path)
    before = census(top)
    assert run_sync(source, top, KEEPING).problems == []
    touch(top / name)
    now = (top / name).stat()
    done = undone(top)
    assert done.report.exit is ExitCode.PARTIAL
    names = {b"twin", b"twin2"} if name == "twin" else {name.encode()}
    assert set(done.left_alone) <= names and done.left_alone
    after = (top / name).stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (now.st_mode, now.st_uid, now.st_gid)
    lines = [line for line in unlike(before, census(top)) if "another name" not in line]
    assert all(any(repr(each) in line for each in names) for line in lines), lines
    assert not any(path.stat().st_mode & stat.S_ISUID for path in _evil(top))
    # It stays so with each further undo.
    assert undone(top).report.number is None


@pytest.mark.parametrize("touch", [None, *TOUCHES[:2]])
def test_reading_is_no_touch(touch: Change | None, tmp_path: Path) -> None:
    source, top = _sources(tmp_path)
    before = census(top)
    assert run_sync(source, top, KEEPING).problems == []
    for name in CHANGED:
        (top / name).read_bytes()
    subprocess.run(["cp", "-a", f"{top}/", tmp_path / "copy"], check=True)
    if touch is not None:  # of another one
        (top / "other").write_bytes(b"other" * 10)
        touch(top / "other")
    assert run_sync(top, tmp_path / "elsewhere", SyncOptions(fsync=False)).problems == []
    assert undone(top).left_alone == []
    assert [
        line for line in unlike(before, census(top)) if "'other'" not in line and "b'.'" not in line
    ] == []


# Chains: later syncs that are undone before are no touch


def _content(source: Path) -> None:
    for name in CHANGED:
        (source / name).write_bytes(b"newer content of " + name.encode())


def _removed(source: Path) -> None:
    for name in CHANGED:
        (source / name).unlink()


def _metadata(source: Path) -> None:
    for name in CHANGED:
        (source / name).chmod(0o711)


def _further_names(source: Path) -> None:
    for name in CHANGED:
        os.link(source / name, source / f"{name}.link")


def _joined(source: Path) -> None:
    for name in CHANGED[1:]:
        (source / name).unlink()
        os.link(source / CHANGED[0], source / name)


def _made_directories(source: Path) -> None:
    for name in CHANGED:
        (source / name).unlink()
        (source / name).mkdir()


def _moved(source: Path) -> None:
    (source / "below").mkdir()
    for name in CHANGED:
        (source / name).rename(source / "below" / name)


def _attributes(source: Path) -> None:
    for name in CHANGED:
        os.setxattr(source / name, "user.of", b"the second sync")


LATER_SYNCS = [
    _content, _removed, _metadata, _further_names, _joined, _made_directories, _moved, _attributes,
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("second", LATER_SYNCS)
@pytest.mark.parametrize("first", [None, *LATER_SYNCS])
def test_syncs_are_undone_one_after_the_other(first: Change | None, second: Change, tmp_path: Path) -> None:
    if first in (second, _removed, _made_directories, _moved):
        pytest.skip("nothing is left to change")
    source, top = _sources(tmp_path)
    found = [census(top)]
    assert run_sync(source, top, KEEPING).problems == []
    for change in filter(None, (first, second)):
        found.append(census(top))
        change(source)
        assert run_sync(source, top, KEEPING).problems == []
    while found:
        done = undone(top)
        assert done.left_alone == [], (len(found), [str(event) for event in done.events])
        assert unlike(found.pop(), census(top)) == []


def test_a_sync_that_was_killed_at_any_step_is_undone_and_the_one_before_it_too(tmp_path: Path) -> None:
    """Also right between a change and its note: the undo before it does not take that for newer work."""
    stop_at, killed = 0, True
    while killed:
        place = tmp_path / str(stop_at)
        place.mkdir()
        source = write_tree(place / "s", tree({"tool": File(CONTENT, 0o755)}))
        top = write_tree(place / "d", tree({"tool": File(CONTENT, 0o4755)}))
        before = census(top)
        assert run_sync(source, top, KEEPING).problems == []
        (source / "tool").chmod(0o4711)
        work = partial(run_sync, source, top, KEEPING, way=Way.HERE)
        killed = ended_at_step(work, stop_at, tmp_path / "said")
        while undone(top).report.number is not None:
            pass
        assert unlike(before, census(top)) == [], stop_at
        stop_at += 1
    assert stop_at > 3


def test_a_touch_between_two_syncs_is_seen_by_the_second_undo(tmp_path: Path) -> None:
    source, top = _sources(tmp_path)
    assert run_sync(source, top, KEEPING).problems == []
    for name in CHANGED:
        _written_to(top / name)
    (source / "new").write_bytes(b"new")
    _metadata(source)
    assert run_sync(source, top, KEEPING).problems == []
    assert undone(top).left_alone == []
    # The second sync is back, and what was there before it is newer than the first.
    assert set(undone(top).left_alone) >= {name.encode() for name in CHANGED}
    assert not any(path.stat().st_mode & stat.S_ISUID for path in _evil(top))


def test_what_is_written_to_a_kept_version_is_seen(tmp_path: Path) -> None:
    """By who opened it before it was replaced."""
    source, top = _sources(tmp_path)
    assert run_sync(source, top, KEEPING).problems == []
    opened = {name: (top / name).open("r+b") for name in CHANGED}
    _content(source)
    assert run_sync(source, top, KEEPING).problems == []
    for name, file in opened.items():
        found = os.fstat(file.fileno())
        file.write(EVIL)
        file.flush()
        os.utime(file.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        file.close()
        assert found.st_size == len(EVIL), name
    undone(top)
    undone(top)
    assert not any(path.stat().st_mode & stat.S_ISUID for path in _evil(top))


def test_a_sync_without_undo_in_between_is_newer_work(tmp_path: Path) -> None:
    source, top = _sources(tmp_path)
    assert run_sync(source, top, KEEPING).problems == []
    _metadata(source)
    assert run_sync(source, top, replace(KEEPING, keep_undo=None)).problems == []
    assert set(undone(top).left_alone) >= {name.encode() for name in CHANGED if name != "attribute"}


def test_access_times_are_no_touch(tmp_path: Path) -> None:
    """A sync sets them last, with --atimes."""
    source, top = _sources(tmp_path)
    for path in source.glob("*"):
        os.utime(path, ns=(10**18, path.stat().st_mtime_ns))
    before = census(top)
    assert run_sync(source, top, replace(KEEPING, atimes=True)).problems == []
    assert undone(top).left_alone == []
    assert unlike(before, census(top)) == []
