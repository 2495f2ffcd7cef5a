"""A sweep removes stale temporaries and no others."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from rdc.files.base import paths as temporary_module
from rdc.files.base.metadata import ANYTHING
from rdc.files.base.paths import temporary_name
from rdc.files.replace.commit_group import CommitGroup, sweep_temporaries
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from tests.files.replace.written_files import PLAIN, read, temporaries, write


def test_a_sweep_takes_what_is_stale_and_nothing_else(root: Root, tmp_path: Path) -> None:
    live = Replacement(root, b"f")
    stale = [tmp_path / os.fsdecode(temporary_name(b"f")) for _ in range(5)]
    stale[0].write_bytes(b"left behind")
    stale[1].write_bytes(b"read-only")
    stale[1].chmod(0o400)
    stale[2].symlink_to("/etc")
    stale[3].mkdir()
    (stale[4] / "somebody's").mkdir(parents=True)
    (tmp_path / "file").touch()
    names = [os.fsencode(name) for name in os.listdir(tmp_path)]
    assert sweep_temporaries(root, b"", names) == 4
    # What is in a directory is nobody's litter.
    assert sorted(os.listdir(tmp_path)) == sorted(["file", stale[4].name, os.fsdecode(live.temporary)])
    assert sweep_temporaries(root, b"", names) == 0
    assert (stale[4] / "somebody's").is_dir()
    live.abandon()
    assert root.list(b"").names == (b"file",)


def test_a_file_that_loses_a_temporary_name_is_still_the_one_listed(root: Root, tmp_path: Path) -> None:
    """A kill may leave a link without its name. Its file is known by its other names."""
    (tmp_path / "file").write_bytes(b"text")
    left = tmp_path / os.fsdecode(temporary_name(b"file"))
    left.hardlink_to(tmp_path / "file")
    listed = root.identity(b"file")
    assert sweep_temporaries(root, b"", [os.fsencode(left.name)]) == 1
    now = root.identity(b"file")
    assert now.ctime_ns != listed.ctime_ns
    assert root.check.is_still(listed, now)


def test_what_a_killed_trial_left_goes_once_nobody_has_it(root: Root, tmp_path: Path) -> None:
    """And nothing goes that no trial makes, or that a trial is at work in."""
    left, others, large, live = (tmp_path / os.fsdecode(temporary_name(b"trial")) for _ in range(4))
    for trial in (left, others, large, live):
        (trial / "e").mkdir(parents=True)
        (trial / "b").write_bytes(b"trial")
        os.mkfifo(trial / "p")
    (others / "somebody's").touch()
    (large / "c").write_bytes(b"somebody's")
    locked = os.open(live, os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    names = [os.fsencode(name) for name in os.listdir(tmp_path)]
    assert sweep_temporaries(root, b"", names) == 1
    assert sorted(os.listdir(tmp_path)) == sorted(one.name for one in (others, large, live))
    assert (large / "c").read_bytes() == b"somebody's"
    assert sorted(os.listdir(others)) == ["b", "e", "p", "somebody's"]
    os.close(locked)
    assert sweep_temporaries(root, b"", names) == 1
    assert not live.exists()


def test_a_temporary_is_never_swept_between_its_creation_and_its_lock(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep runs at the worst moments: before the lock, and, holding its own, while the writer locks."""
    flock = fcntl.flock
    swept: list[int] = []
    held: list[int] = []

    def racing(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        if len(swept) < 3:
            swept.append(sweep_temporaries(root, b"", temporaries(root)))
            monkeypatch.setattr(fcntl, "flock", racing)
        elif len(held) < 3:
            held.append(os.open(os.path.join(root.label, temporaries(root)[0]), os.O_RDWR))
            flock(held[-1], fcntl.LOCK_EX)
            monkeypatch.setattr(fcntl, "flock", racing)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    replacement = write(root, b"f", b"new")
    assert swept == [1, 1, 1]
    assert len(held) == 3
    assert sweep_temporaries(root, b"", temporaries(root)) == 0
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(replacement, b"f", PLAIN, False, None)
    assert read(root, b"f") == b"new"
    for fd in held:
        os.close(fd)
    assert temporaries(root) == []


def test_a_finished_file_is_not_swept_under_its_old_name(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer renames and closes between the sweep's open and its lock."""
    replacement = write(root, b"f", b"new")
    name = replacement.temporary
    flock = fcntl.flock

    def racing(fd: int, operation: int) -> None:
        with CommitGroup(root, on_commit=lambda _: None) as group:
            group.add(replacement, b"f", PLAIN, False, None)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    assert sweep_temporaries(root, b"", [name]) == 0
    assert read(root, b"f") == b"new"


def test_a_name_used_again_is_not_swept_for_what_had_it_before(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(root, b"f", b"first")
    name = first.temporary
    monkeypatch.setattr(temporary_module, "temporary_name", lambda target: name)
    flock = fcntl.flock
    second: list[Replacement] = []

    def racing(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        first.abandon()
        second.append(write(root, b"f", b"second"))
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", racing)
    assert sweep_temporaries(root, b"", [name]) == 0
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(second[0], b"f", PLAIN, False, None)
    assert read(root, b"f") == b"second"


def test_sweeping_all_the_time_loses_no_write(root: Root) -> None:
    stop = threading.Event()
    swept = 0

    def run() -> None:
        nonlocal swept
        other = Root.open(root.label)
        while not stop.is_set():
            swept += sweep_temporaries(other, b"", temporaries(other))

    sweeper = threading.Thread(target=run)
    sweeper.start()
    committed: list[bytes] = []
    try:
        with CommitGroup(root, fsync=False, on_commit=committed.append, files=7) as group:
            for index in range(1500):
                path = b"%d" % (index % 50)
                group.add(write(root, path, b"%d" % index), path, PLAIN, False, ANYTHING)
                root.replace_symlink(b"link", b"%d" % index)
    finally:
        stop.set()
        sweeper.join()
    assert len(committed) == 1500
    assert [read(root, b"%d" % index) for index in range(50)] == [b"%d" % (1450 + i) for i in range(50)]
    assert os.readlink(os.path.join(root.label, b"link")) == b"1499"
    assert temporaries(root) == []
