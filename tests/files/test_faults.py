"""Every system call of a replacement fails, or is the last, in turn: each path stays old or becomes new."""

from __future__ import annotations

import errno
import fcntl
import gc
import math
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rdc.errors import FileError, OutOfSpaceError, RdcError
from rdc.files.base import directory_descriptors as directory_module
from rdc.files.base import metadata as metadata_module
from rdc.files.base import taking_names as durable_module
from rdc.files.base import taking_names as rename_module
from rdc.files.base.metadata import ANYTHING
from rdc.files.replace import commit_group as commit_module
from rdc.files.replace import replacement as reservation
from rdc.files.replace.commit_group import CommitGroup, sweep_temporaries
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Identity, Metadata
from tests.support.share import share
from tests.support.trees.descriptors import open_descriptors

BIG = (1 << 20) + 4096  # more than is reserved first
OLD = {b"changed": b"old", b"d/changed": b"old in d", b"big": b"B" * BIG}
# Each new content ends in a byte that is copied from `big`.
NEW = {
    b"changed": b"newB",
    b"d/changed": b"new in dB",
    b"big": b"b" * (BIG - 1) + b"B",
    b"added": b"nB",
    b"d/added": b"n in dB",
}
OWNER = os.geteuid() == 0
META = Metadata(0o640, 12_345, 1234 if OWNER else os.geteuid(), 2345 if OWNER else os.getegid())

# Where each call is looked up when it is made.
CALLS: list[tuple[object, str]] = [
    (os, "open"),
    (os, "close"),
    (os, "fstat"),
    (os, "stat"),
    (os, "pwrite"),
    (os, "pread"),
    (os, "copy_file_range"),
    (os, "ftruncate"),
    (os, "chown"),
    (os, "chmod"),
    (os, "utime"),
    (os, "fsync"),
    (os, "rename"),
    (os, "unlink"),
    (os, "symlink"),
    (fcntl, "flock"),
    (reservation, "fallocate_keep_size"),
    (rename_module, "rename_no_replace_between"),
    (durable_module, "syncfs"),
    (directory_module, "open_directory_beneath"),
    (metadata_module, "chmod_no_follow"),
]


class Injector:
    """Counts the calls of the names above; `act` runs instead of (or around) the one numbered `at`."""

    def __init__(
        self, patch: pytest.MonkeyPatch, act: Callable[[Callable[[], object]], object], at: int
    ) -> None:
        self.count = 0
        self.names: list[str] = []
        for module, name in CALLS:
            patch.setattr(module, name, self._wrap(getattr(module, name), name, act, at))

    def _wrap(
        self, real: Callable[..., object], name: str, act: Callable[[Callable[[], object]], object], at: int
    ) -> Callable[..., object]:
        def wrapped(*arguments: object, **options: object) -> object:
            number, self.count = self.count, self.count + 1
            self.names.append(name)
            if number == at:
                if name == "close":
                    real(*arguments, **options)  # a descriptor is closed even when close reports an error
                    return act(lambda: None)
                return act(lambda: real(*arguments, **options))
            return real(*arguments, **options)

        return wrapped


def prepare(top: Path) -> None:
    (top / "d").mkdir(parents=True)
    for path, data in OLD.items():
        (top / os.fsdecode(path)).write_bytes(data)
    (top / "link").symlink_to("old target")


def replace_all(top: Path, committed: list[bytes], failed: list[FileError], *, batch: bool) -> None:
    """Small and big files, written and copied, old and new, in two directories, and a symlink."""
    root = Root.open(os.fsencode(top))
    expected: dict[bytes, Identity] = {path: root.identity(path) for path in OLD}
    with CommitGroup(root, on_commit=committed.append, on_error=failed.append) as group:
        for path, data in NEW.items():
            try:
                with root.open_read(b"big") as source:
                    replacement = Replacement(root, path, expected_size=len(data) + 1)
                    with replacement:
                        replacement.write(data[:-1])
                        replacement.copy_from(source.fileno(), 0, 1)
                        assert replacement.pread(0, len(data)) == data
                        # Half of them carelessly, so that both ways to rename are in the test.
                        seen = ANYTHING if batch and path in OLD else expected.get(path)
                        group.add(replacement, path, META, OWNER, seen)
            except FileError as error:
                failed.append(error)
    root.replace_symlink(b"link", b"new target", META, owner=OWNER)


def check(top: Path, committed: list[bytes]) -> None:
    """Old or new, never neither; what was called committed is new, with its metadata; litter can be swept."""
    root = Root.open(os.fsencode(top))
    for path, new in NEW.items():
        file = top / os.fsdecode(path)
        old = OLD.get(path)
        found = file.read_bytes() if file.exists() else None
        assert found in ({new} if path in committed else {old, new}), path
        if found == new:
            assert root.metadata(path) == META
    assert os.readlink(top / "link") in {"old target", "new target"}
    for directory in (b"", b"d"):
        litter = root.listed(directory).reserved
        assert sweep_temporaries(root, directory, litter) == len(litter)
        names = set(root.list(directory).names)
        assert root.listed(directory).reserved == ()
        assert names <= {b"added", b"big", b"changed", b"d", b"link"}


def descriptors() -> int:
    return len(open_descriptors())


def undisturbed(top: Path, monkeypatch: pytest.MonkeyPatch, *, batch: bool) -> list[str]:
    prepare(top)
    committed: list[bytes] = []
    failed: list[FileError] = []
    with monkeypatch.context() as patch:
        injector = Injector(patch, lambda call: call(), -1)
        replace_all(top, committed, failed, batch=batch)
    assert (sorted(committed), failed) == (sorted(NEW), [])
    check(top, committed)
    wanted = {name for _, name in CALLS} - {"unlink", "syncfs" if not batch else "fsync"}
    wanted -= {"chmod_no_follow"} | (set() if OWNER else {"chown"})
    assert wanted <= set(injector.names), "the scenario must make each call it wants to see fail"
    return injector.names


@pytest.fixture(autouse=True)
def only_new_garbage() -> Iterator[None]:
    """What earlier tests left of objects, much after some thousands, is not looked through at every step."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def same_calls_at_any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory is looked up again because the machine is slow: each run makes the same calls."""
    monkeypatch.setattr(directory_module, "TRUSTED_SECONDS", math.inf)


@pytest.fixture(params=[False, True], ids=["fsync", "syncfs"])
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(commit_module, "SYNCFS_FILES", 1)
    return bool(request.param)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.ENOENT, errno.EPERM])
def test_each_call_fails_in_turn(
    tmp_path: Path, batch: bool, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = undisturbed(tmp_path / "clean", monkeypatch, batch=batch)
    before = descriptors()
    outcomes = set()
    for at in share(range(len(calls))):
        top = tmp_path / str(at)
        prepare(top)
        committed: list[bytes] = []
        failed: list[FileError] = []

        def fail(call: Callable[[], object]) -> object:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            Injector(patch, fail, at)
            try:
                replace_all(top, committed, failed, batch=batch)
                outcomes.add("tolerated" if len(committed) == len(NEW) else "reported")
                assert len(failed) + len(committed) == len(NEW), f"nobody heard of {calls[at]}"
            except OutOfSpaceError:
                assert number == errno.ENOSPC
                outcomes.add("stopped")
            except RdcError:
                outcomes.add("raised")
        check(top, committed)
        failed.clear()  # their tracebacks hold the frames, and these the directories
        assert descriptors() == before, f"call {at}, {calls[at]}, leaks a descriptor"
    assert {"stopped", "tolerated"} <= outcomes if number == errno.ENOSPC else "reported" in outcomes


def test_each_call_is_the_last_in_turn(tmp_path: Path, batch: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 right before and right after every call: nothing in the process gets a chance to clean up."""
    calls = undisturbed(tmp_path / "clean", monkeypatch, batch=batch)
    for at in share(range(len(calls))):
        for before in (True, False):
            top = tmp_path / f"{at}-{before}"
            prepare(top)
            reader, writer = os.pipe()

            def die(call: Callable[[], object], before: bool = before) -> object:
                if not before:
                    call()
                os.kill(os.getpid(), signal.SIGKILL)
                return None

            child = os.fork()
            if not child:
                # What is committed goes through the pipe byte by byte, as the parent must believe it.
                paths = sorted(NEW)

                class Said(list[bytes]):
                    def append(self, path: bytes, writer: int = writer, paths: list[bytes] = paths) -> None:
                        os.write(writer, bytes([paths.index(path)]))

                with pytest.MonkeyPatch.context() as patch:
                    Injector(patch, die, at)
                    try:
                        replace_all(top, Said(), [], batch=batch)
                    finally:
                        os._exit(1)
            os.close(writer)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), f"call {at}, {calls[at]}, was never made"
            with os.fdopen(reader, "rb") as said:
                check(top, [sorted(NEW)[index] for index in said.read()])
