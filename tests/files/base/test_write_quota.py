"""How much may be written below a Root: whatever makes or writes something asks first, and leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.files.replace.replacement import Replacement
from rdc.files.root.policies import ENTRY_BYTES, WriteQuota
from rdc.files.root.root import Root, WritePolicy

SIZE = 3 * ENTRY_BYTES


def root_of(place: Path, size: int = SIZE) -> Root:
    return Root(os.open(place, os.O_PATH | os.O_DIRECTORY), b"module", writes=WritePolicy(WriteQuota(size)))


def write_more(root: Root) -> None:
    with Replacement(root, b"new") as new:
        new.write(bytes(2 * ENTRY_BYTES))
        new.write(b"x")


def copy_more(root: Root) -> None:
    with Replacement(root, b"new") as new, open("/dev/zero", "rb") as zero:
        new.copy_from(zero.fileno(), 0, 2 * ENTRY_BYTES + 1)


def announce_more(root: Root) -> None:
    Replacement(root, b"new", expected_size=SIZE + 1)


def many(make: Callable[[Root, bytes], object]) -> Callable[[Root], None]:
    def make_all(root: Root) -> None:
        for number in range(3):
            make(root, b"%d" % number)
        assert not root.may_spend(1)
        make(root, b"new")

    return make_all


@pytest.mark.parametrize(
    "work",
    [
        write_more,
        copy_more,
        announce_more,
        many(Root.make_directory),
        many(lambda root, path: root.replace_symlink(path, b"target")),
        many(Replacement),
    ],
)
def test_all_that_writes_keeps_to_it(work: Callable[[Root], None], tmp_path: Path) -> None:
    root = root_of(tmp_path)
    with pytest.raises(
        RdcError, match=r"module/new: cannot write it: this session may write 12288 bytes"
    ) as it:
        work(root)
    assert it.value.code == ExitCode.FILE_IO
    # What was refused is not there, under no name.
    assert sum(path.stat().st_size for path in tmp_path.iterdir() if not path.is_symlink()) <= SIZE
    assert not (tmp_path / "new").exists()


def test_roots_share_one(tmp_path: Path) -> None:
    """The directories of a module in which one session works do so."""
    allowance = WriteQuota(2 * ENTRY_BYTES)
    for number in range(2):
        place = tmp_path / str(number)
        place.mkdir()
        root = Root(os.open(place, os.O_PATH | os.O_DIRECTORY), b"m", writes=WritePolicy(allowance))
        root.make_directory(b"d")
    assert not root.may_spend(1)
    with pytest.raises(RdcError):
        root.make_directory(b"e")
