"""Renames that one side cannot repeat: entries are copied and deleted instead, and nothing is held."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc import ExitCode
from rdc.files.root.root import Root
from rdc.uniting.state import RootState
from rdc.uniting.steps import Steps
from tests.uniting.pairs import Pair, during
from tests.uniting.real_world import snapshot


@pytest.fixture
def fixed(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """On file systems that replace an entry where a rename leads."""
    monkeypatch.setattr(RootState, "can_rename", lambda _: False)
    for name in ("d/f", "d/g", "h", "stays"):
        pair.both(name, f"text of {name}")
    pair.unite()
    return pair


def settled(pair: Pair) -> None:
    assert pair.unite().exit is ExitCode.OK
    assert pair.items() == []
    assert snapshot(pair.left) == snapshot(pair.right)


@pytest.mark.parametrize("side", ["left", "right"])
def test_where_no_rename_is_safe_entries_are_copied_and_deleted(fixed: Pair, side: str) -> None:
    at: Path = getattr(fixed, side)
    (at / "h").rename(at / "i")
    (at / "d").rename(at / "e")
    assert fixed.unite().exit is ExitCode.OK
    assert {action for _, action, _ in fixed.items()} == {"new", "deleted"}
    assert fixed.texts("e/f") == ["text of d/f"] * 2
    assert fixed.texts("i") == ["text of h"] * 2
    settled(fixed)


@pytest.mark.parametrize("linked", [True, False], ids=["a link more", "one name"])
def test_a_file_with_a_name_more_at_the_other_side_is_copied(pair: Pair, linked: bool) -> None:
    for name in ("h", "stays"):
        pair.both(name, "text")
    if linked:
        os.link(pair.right / "h", pair.right / "j")
    pair.unite()
    (pair.left / "h").rename(pair.left / "i")
    assert pair.unite().exit is ExitCode.OK
    assert ("right", "renamed", b"h") in pair.items() or linked
    assert (pair.texts("h"), pair.texts("i")) == ([None, None], ["text", "text"])
    settled(pair)


@pytest.mark.parametrize("linked", [True, False], ids=["a link more", "no safe rename"])
def test_both_versions_are_kept(pair: Pair, monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    pair.both("f", "old")
    pair.unite()
    for side, text, when in ((pair.left, "left", 10), (pair.right, "right!", 20)):
        (side / "f").write_text(text)
        os.utime(side / "f", (when, when))
    if linked:
        os.link(pair.left / "f", pair.left / "link")
    else:
        monkeypatch.setattr(RootState, "can_rename", lambda _: False)
    assert pair.unite(keep_both=True).exit is ExitCode.OK
    (copy,) = (path.name for path in pair.left.glob("f.conflict-*"))
    assert pair.texts("f") == ["right!", "right!"]
    assert pair.texts(copy) == ["left", "left"]
    assert pair.texts("link") == (["left", "left"] if linked else [None, None])
    settled(pair)


def test_the_only_copy_of_a_version_is_never_replaced(fixed: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version that was to be copied changed, so nothing takes its place."""
    for side, text, when in ((fixed.left, "left", 10), (fixed.right, "right!", 20)):
        (side / "h").write_text(text)
        os.utime(side / "h", (when, when))
    with monkeypatch.context() as patch:
        during(patch, lambda: (fixed.left / "h").write_text("user"))
        assert fixed.unite(keep_both=True).exit is ExitCode.PARTIAL
    assert fixed.texts("h") == ["user", "right!"]


def test_a_kill_between_copy_and_replacement_makes_no_second_copy(
    fixed: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side, text, when in ((fixed.left, "left", 10), (fixed.right, "right!", 20)):
        (side / "h").write_text(text)
        os.utime(side / "h", (when, when))
    with monkeypatch.context() as patch:

        def killed(self: Steps) -> None:
            for group in self._groups:
                group.flush()
            raise KeyboardInterrupt

        patch.setattr(Steps, "_flush", killed)
        with pytest.raises(KeyboardInterrupt):
            fixed.unite(keep_both=True)
    for _ in range(2):
        assert fixed.unite(keep_both=True).exit is ExitCode.CONFLICTS
        assert fixed.texts("h") == ["left", "right!"]
        assert len(list(fixed.right.glob("h.conflict-*"))) == 1


def test_the_file_system_is_asked_by_trying(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root.open(os.fsencode(pair.left))
    try:
        with RootState(root, write=True) as state:
            asked: list[bytes] = []
            monkeypatch.setattr("rdc.uniting.state.rename_no_replace_between", _refusing(asked))
            assert state.can_rename()
            assert len(asked) == 2
            monkeypatch.setattr("rdc.uniting.state.rename_no_replace_between", _replacing)
            assert not state.can_rename()
            assert not [name for name in os.listdir(pair.left / ".rdc-unite") if name.startswith("try")]
    finally:
        root.release()


def _refusing(asked: list[bytes]) -> Callable[..., None]:
    """A rename that replaces nothing."""

    def rename(old: bytes, old_directory: int, new: bytes, new_directory: int) -> None:
        asked.append(new)
        if new in map(os.fsencode, os.listdir(new_directory)):
            raise FileExistsError
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    return rename


def _replacing(old: bytes, old_directory: int, new: bytes, new_directory: int) -> None:
    os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
