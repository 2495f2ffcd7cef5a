"""Steps that a flag of a file refuses: they are tried again, nothing comes back, and the reason is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc import ExitCode
from rdc.uniting.rows import LEFT, RIGHT
from tests.uniting.pairs import Machines, Pair

pytestmark = pytest.mark.needs("ext4")  # for chattr, and root


def flag(path: Path, which: str) -> None:
    subprocess.run(["chattr", which, path], check=True)


@pytest.fixture(params=["here", "left dials", "right dials"])
def united(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path) if request.param == "here" else Machines(tmp_path)
    if isinstance(pair, Machines):
        pair.near = LEFT if request.param == "left dials" else RIGHT
    for name in ("d/f", "d/g", "f"):
        pair.both(name, name)  # their contents are not known after a first run
    pair.unite()
    yield pair
    for path in (pair.left / "d", pair.left / "f", pair.left):
        if path.exists():
            flag(path, "-i")


def test_a_deletion_that_was_refused_is_tried_again(united: Pair) -> None:
    (united.right / "d/f").unlink()
    flag(united.left / "d", "+i")
    for _ in range(3):
        assert united.unite().exit is ExitCode.PARTIAL
        (told,) = united.problems()
        assert "its directory has the immutable flag" in told
    flag(united.left / "d", "-i")
    assert united.unite().exit is ExitCode.OK
    assert united.texts("d/f") == [None, None]


def test_an_edit_after_a_refused_deletion_comes_back(united: Pair) -> None:
    (united.right / "d/f").unlink()
    flag(united.left / "d", "+i")
    united.unite()
    (united.left / "d/f").write_text("e/e")  # of the same size
    os.utime(united.left / "d/f", ns=(5_000_000_123, 5_000_000_123))
    flag(united.left / "d", "-i")
    assert united.unite().exit is ExitCode.OK
    assert united.texts("d/f") == ["e/e", "e/e"]


def test_what_cannot_be_kept_for_an_undo_says_why(united: Pair) -> None:
    (united.right / "f").write_text("what is known")
    united.unite()
    (united.right / "f").write_text("edited")
    flag(united.left / "f", "+i")
    assert united.unite().exit is ExitCode.PARTIAL
    (told,) = united.problems()
    assert "found that it has the immutable flag (EPERM), which keeps root out, too" in told
    assert told.endswith("it stays as it is; chattr -i takes it away; then run again")
    flag(united.left / "f", "-i")
    assert united.unite().exit is ExitCode.OK
    assert united.texts("f") == ["edited", "edited"]


def test_a_rename_that_was_refused_says_where_to_look(united: Pair) -> None:
    (united.right / "d/f").rename(united.right / "d/renamed")
    flag(united.left / "d", "+i")
    assert united.unite().exit is ExitCode.PARTIAL
    assert "look at permissions and flags (ls -ld, lsattr -d), then run again" in united.problems()[0]
    flag(united.left / "d", "-i")
    assert united.unite().exit is ExitCode.OK
    assert united.texts("d/renamed") == ["d/f", "d/f"]
