"""What a trial of a file system learns when one of its calls fails for another reason."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from rdc.files.facts.file_systems import learn_facts
from rdc.files.root.root import Root
from rdc.model.entries import Kind
from tests.support.running.failing_calls import Fault, Made, with_fault

NOTHING = ["nothing"]


def learned(directory: Path, fault: Fault | None = None) -> Made:
    root = Root(os.open(directory, os.O_PATH | os.O_DIRECTORY), b"place")

    def learn() -> list[str]:
        found = learn_facts(root, b"", owners=os.geteuid() == 0)
        return NOTHING if found is None else [repr(found)]

    learn()  # which imports: a call that fails is one of the trial itself
    made = with_fault(learn, fault)
    root.release()
    for left in directory.iterdir():  # which the next run of a sync sweeps
        shutil.rmtree(left)
    return made


def test_a_disk_that_fails_once_takes_nothing_from_a_file_system(tmp_path: Path) -> None:
    clean = learned(tmp_path)
    assert clean.value != NOTHING
    for at, name in enumerate(clean.calls):
        made = learned(tmp_path, Fault(at))
        assert made.failed == [(name, errno.EIO)]
        assert made.value in (NOTHING, clean.value), (at, name)


def test_an_error_of_the_entry_or_a_full_disk_ends_the_trial(tmp_path: Path) -> None:
    clean = learned(tmp_path)
    tried = 0
    for name in ("symlinkat", "mkdirat", "pwrite64"):
        for at in (at for at, call in enumerate(clean.calls) if call == name):
            for choice in (1, 2):
                made = learned(tmp_path, Fault(at, 5, choice))
                if made.failed[0][1] in (errno.ENOSPC, errno.ENAMETOOLONG):
                    tried += 1
                    assert made.value == NOTHING, made.failed
    assert tried


def test_what_is_refused_again_and_again_is_lacking(tmp_path: Path) -> None:
    clean = learned(tmp_path)
    at = clean.calls.index("symlinkat")
    for fault in (Fault(at, 2), Fault(at, 1, 1)):  # EIO twice, EPERM
        assert "unmade=frozenset({<Kind.SYMLINK" in learned(tmp_path, fault).value[0]


def test_a_call_that_makes_something_else_before_it_is_refused_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mounts of rclone do so: a fifo becomes a file, and the answer is EIO."""

    def mkfifo(name: bytes, mode: int, *, dir_fd: int) -> None:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, dir_fd=dir_fd))
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "mkfifo", mkfifo)
    root = Root(os.open(tmp_path, os.O_PATH | os.O_DIRECTORY), b"place")
    found = learn_facts(root, b"", owners=False)
    root.release()
    assert found is not None
    assert found.facts.keeps.unmade == {Kind.SPECIAL}
    assert not os.listdir(tmp_path)
