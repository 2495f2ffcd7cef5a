"""Extended attributes and ACLs of any two trees, and of new files, which never allow more than their ACLs."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.entries import Metadata
from rdc.session.destination.finish import XattrSetter
from tests.support.running.syncing import run_sync
from tests.support.share import examples
from tests.support.trees.trees import Directory, Link, tree, write_tree
from tests.support.trees.xattrs_and_acls import BOTH, MANY, acl, allow, expect_equal, give

pytestmark = pytest.mark.needs("rsync")


@pytest.fixture
def source(linking: Path) -> Path:
    files = {"plain": b"1", "marked": b"2", "d/shared": b"3", "d/e/both": b"4", "d/e/bare": b"5"}
    top = write_tree(linking / "s", tree(files) | tree({"l": Link(b"marked"), "q": Directory()}))
    give(top / "marked", a="one", b="")
    give(top / "d/e/both", a="one", long="x" * 300)
    give(top / "d", trusted_t="of root")
    give(top / "l", trusted_t="of a link")
    allow(top / "d/shared", acl(6))
    allow(top / "d/e/both", acl(4, group=4))
    allow(top / "d", acl(7, owner=7), acl(5, owner=7))
    allow(top, acl(1, owner=7, group=5, other=5))
    return top


@pytest.fixture
def destination(source: Path) -> Path:
    return source.parent / "d"


NAMES = st.sampled_from(["user.a", "user.b", "user.c.d", "trusted.e"])


SETS = st.dictionaries(NAMES, st.binary(max_size=40), max_size=3)


ACLS = st.none() | st.builds(
    acl, st.integers(0, 7), group=st.integers(0, 7), mask=st.integers(0, 7), other=st.integers(0, 7)
)


PATHS = ("", "a", "b", "d", "d/a", "d/b", "d/e")


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    marks=st.tuples(
        *[st.dictionaries(st.sampled_from(PATHS), st.tuples(SETS, ACLS), max_size=6) for _ in range(2)]
    ),
    edited=st.sets(st.sampled_from(("a", "b", "d/a"))),
)
def test_any_two_trees(
    marks: tuple[dict[str, tuple[dict[str, bytes], bytes | None]], ...], edited: set[str], tmp_path: Path
) -> None:
    sides = []
    for number, given_ in enumerate(marks):
        top = tmp_path / str(number)
        shutil.rmtree(top, ignore_errors=True)
        sides.append(
            write_tree(top, tree({"a": b"1", "b": b"2", "d/a": b"3", "d/b": b"4", "d/e": Directory()}))
        )
        for name in edited if number else ():
            (top / name).write_bytes(b"old content")
        for name, (attributes, access) in given_.items():
            for attribute, value in attributes.items():
                os.setxattr(top / name, attribute, value)
            allow(top / name, access)
    run = run_sync(sides[0], sides[1], BOTH)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    expect_equal(sides[0], sides[1])
    assert run_sync(sides[0], sides[1], BOTH).items == []


@pytest.mark.parametrize("known", [False, True], ids=["listed", "by manifest"])
def test_a_new_file_never_allows_more_than_its_acl(
    known: bool, source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped right before ACLs are set: a mode with the mask in it would let the group in."""
    if known:
        write_tree(source, tree(MANY))
        run_sync(source, destination, BOTH)
        for name in ("d/shared", "d/e/both"):
            (source / name).write_bytes(b"a new version")

    def stop(self: XattrSetter, top: Metadata | None, **how: object) -> None:
        raise KeyboardInterrupt

    assert stat.S_IMODE((source / "d/shared").stat().st_mode) == 0o670
    assert stat.S_IMODE((source / "d").stat().st_mode) == 0o770
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(XattrSetter, "run", stop)
        run_sync(source, destination, BOTH)
    assert stat.S_IMODE((destination / "d/shared").stat().st_mode) == 0o600
    assert stat.S_IMODE((destination / "d/e/both").stat().st_mode) == 0o640
    assert stat.S_IMODE((destination / "d").stat().st_mode) == (0o770 if known else 0o700)
    assert stat.S_IMODE(destination.stat().st_mode) == (0o755 if known else 0o711)
    assert run_sync(source, destination, BOTH).done.exit is ExitCode.OK
    expect_equal(source, destination)
