"""What a check trusts, leaves out, cannot read and refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.catalog.store import NoCatalog
from rdc.checking.records import CheckOptions
from rdc.chunking import ChunkParams
from rdc.errors import ExitCode, FileError, IncompatiblePeerError, RdcError
from rdc.files.base.paths import temporary_name
from rdc.files.root.source_file import SourceFile
from rdc.library.trees import check
from rdc.limits import SMALL_MANIFEST
from rdc.model.location import Location
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import DIALECT
from rdc.protocol.messages.content import FileFailed, RootAnswer
from rdc.protocol.messages.course import Done
from rdc.protocol.wire.codec import Message
from rdc.signature.tree import SignatureTree
from tests.support.running.checking import Checked, check_in_turns, run_check, snapshot
from tests.support.running.syncing import Way, contents_of
from tests.support.trees.loop_images import memory_mounted
from tests.support.trees.trees import Directory, File, Link, Node, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody
from tests.support.wire.lying_source import answering

RESERVED = ".rdc-0123456789abcdef.tmp"
"""Of the form that rdc reserves, but without the right check digits."""

WAYS = pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])


class Asked(NoCatalog):
    """A catalog that counts how often it is asked or filled."""

    def __init__(self) -> None:
        self.asked = self.filled = 0

    def root(self, source: SourceFile, params: ChunkParams) -> bytes | None:
        self.asked += 1
        return None

    def get(self, source: SourceFile, params: ChunkParams) -> SignatureTree | None:
        self.asked += 1
        return None

    def put(self, source: SourceFile, tree: SignatureTree, began: int) -> None:
        self.filled += 1


@pytest.mark.parametrize("trusts", [False, True])
def test_the_catalog_counts_only_where_it_is_trusted(trusts: bool, tmp_path: Path) -> None:
    for name, content in (("one", b"right"), ("other", b"wrong")):
        write_tree(tmp_path / name, tree({"file": File(content)}))
    catalog, checked = Asked(), Checked()
    checked.report = check(
        Location(None, contents_of(tmp_path / "one")),
        Location(None, contents_of(tmp_path / "other")),
        CheckOptions(SyncOptions(), trust_catalog=trusts),
        on_difference=checked.differs,
        catalog=catalog,
    )
    assert checked.found == {b"file": {"content"}}
    assert (bool(catalog.asked), bool(catalog.filled)) == (trusts, trusts)


@WAYS
def test_a_far_side_that_cannot_check_is_named(way: Way, tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_tree(tmp_path / name, tree({"file": b"same"}))
    old = replace(DIALECT, features={"bundle": DIALECT.features["bundle"]})
    with pytest.raises(IncompatiblePeerError, match="fresh"):
        check_in_turns(tmp_path / "one", tmp_path / "other", way=way, far_dialect=old)
    options = CheckOptions(SyncOptions(), trust_catalog=True)
    trusting = check_in_turns(tmp_path / "one", tmp_path / "other", options, way=way, far_dialect=old)
    assert trusting.code is ExitCode.OK


@pytest.mark.parametrize("way", Way)
def test_rules_leave_out_at_both_ends(way: Way, tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", tree({"a.o": b"1", "d/b.o": b"2", "d/c": b"3"}))
    other = write_tree(tmp_path / "other", tree({"z.o": b"1", "d/b.o": b"22", "d/c": b"3"}))
    options = CheckOptions(SyncOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),)))
    checked = (
        run_check(one, other, options) if way is Way.HERE else check_in_turns(one, other, options, way=way)
    )
    assert (checked.found, checked.code) == ({}, ExitCode.OK)


@WAYS
@pytest.mark.parametrize("side", ["one", "other"])
def test_what_cannot_be_read_is_an_error_and_no_difference(way: Way, side: str) -> None:
    with place_of_nobody() as place:

        def work() -> tuple[dict[bytes, frozenset[str]], int, list[bytes], int]:
            same = {"shut/inner/file": b"1", "file": b"2", "other": b"3"}
            for name in ("one", "other"):
                write_tree(place / name, tree(same))
            (place / side / "file").chmod(0)
            (place / ("other" if side == "one" else "one") / "file").chmod(0o200)
            (place / side / "shut").chmod(0)
            before = [os.stat(place / side / name) for name in ("shut", "file")]
            checked = check_in_turns(place / "one", place / "other", way=way)
            assert [os.stat(place / side / name) for name in ("shut", "file")] == before
            paths = [problem.path_bytes for problem in checked.problems]
            return checked.found, int(checked.code), sorted(set(paths)), checked.done.missing

        found, code, paths, missing = as_nobody(work)
        # Modes differ; nothing below the directory does, as far as anybody can tell.
        assert found == {b"file": {"mode"}, b"shut/": {"mode"}}
        assert (code, missing) == (ExitCode.PARTIAL, 0)
        assert paths == [b"file", b"shut"]


@WAYS
def test_equal_trees_that_cannot_be_read_are_not_called_equal(way: Way) -> None:
    with place_of_nobody() as place:

        def work() -> tuple[int, int]:
            for name in ("one", "other"):
                write_tree(place / name, tree({"shut/file": b"1", "file": b"2"}))
                (place / name / "shut").chmod(0)
                os.utime(place / name, ns=(0, 0))
            checked = check_in_turns(place / "one", place / "other", way=way)
            return int(checked.code), len(checked.found)

        assert as_nobody(work) == (ExitCode.PARTIAL, 0)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("there", ["file", "link", "directory", "nothing"])
def test_one_entry_of_a_directory(way: Way, there: str, tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", tree({"entry/below": b"1", "file": b"1", "not": b"x"}))
    other = write_tree(tmp_path / "other", tree({"entry/below": b"2", "file": b"2", "nor": b"y"}))
    (one / "link").symlink_to("a")
    (other / "link").symlink_to("b")
    name = {"directory": "entry"}.get(there, there)

    def found(source: str, destination: str) -> dict[bytes, frozenset[str]]:
        words = os.fsencode(tmp_path / source), os.fsencode(f"{tmp_path}/{destination}")
        options = CheckOptions(SyncOptions(), times=False)
        checked = run_check(*words, options) if way is Way.HERE else check_in_turns(*words, options, way=way)
        return checked.found

    before = snapshot(one, other)
    if there == "nothing":
        with pytest.raises(FileError, match="nothing"):
            found("one/nothing", "other/")
        with pytest.raises(FileError):
            found("one/file", "other/nothing")
    else:
        expected = {
            "file": {b"file": {"content"}},
            "link": {b"link": {"symlink"}},
            "directory": {b"entry/below": {"content"}},
        }[there]
        assert found(f"one/{name}", "other/") == expected
    if there == "file":
        assert found("one/file", "other/file") == {b"file": {"content"}}
        assert found("one/file", "other/nor") == {b"nor" if way is not Way.PUSH else b"file": {"content"}}
    assert snapshot(one, other) == before


@pytest.mark.parametrize("way", Way)
def test_attributes_and_names(way: Way, tmp_path: Path) -> None:
    strange = "\x1b[2J\nx\u202e"
    entries: dict[str, Node | bytes] = {
        "a": b"1",
        "b": b"2",
        strange: b"3",
        "d": Directory(),
        "l": Link(b"a"),
    }
    one = write_tree(tmp_path / "one", tree(entries))
    other = write_tree(tmp_path / "other", tree(entries))
    os.setxattr(one / "a", "user.k", b"1")
    os.setxattr(other / "a", "user.k", b"2")
    os.setxattr(one / "d", "user.only", b"1")
    os.setxattr(other, "user.top", b"1")
    os.setxattr(one / strange, "user.same", b"1")
    os.setxattr(other / strange, "user.same", b"1")

    def found(options: SyncOptions) -> dict[bytes, frozenset[str]]:
        asked = CheckOptions(options)
        return (
            run_check(one, other, asked) if way is Way.HERE else check_in_turns(one, other, asked, way=way)
        ).found

    assert found(SyncOptions()) == {}
    differ = frozenset({"xattrs"})
    assert found(SyncOptions(xattrs=True)) == {b"./": differ, b"a": differ, b"d/": differ}


@pytest.mark.parametrize("way", Way)
def test_a_reserved_name_is_named(way: Way, tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", tree({RESERVED: b"1"}))
    other = write_tree(tmp_path / "other", tree({RESERVED: b"2"}))
    checked = run_check(one, other) if way is Way.HERE else check_in_turns(one, other, way=way)
    assert checked.code is ExitCode.PARTIAL
    assert {problem.path_bytes for problem in checked.problems} == {os.fsencode(RESERVED)}
    assert len(checked.problems) == 2


@pytest.mark.parametrize("way", Way)
def test_leftovers_of_an_interrupted_sync_stay(way: Way, tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", tree({"file": b"1"}))
    other = write_tree(tmp_path / "other", tree({"file": b"1"}))
    name = temporary_name(b"file")
    for top in (one, other):
        (top / os.fsdecode(name)).write_bytes(b"partial")
        os.utime(top, ns=(0, 0))
    before = snapshot(one, other)
    checked = run_check(one, other) if way is Way.HERE else check_in_turns(one, other, way=way)
    assert checked.found == {}
    assert snapshot(one, other) == before


@pytest.mark.needs("mount")
@WAYS
@pytest.mark.parametrize("mounted", ["one", "other", "both"])
@pytest.mark.parametrize("many", [0, SMALL_MANIFEST])
def test_other_file_systems_are_not_entered(way: Way, mounted: str, many: int, tmp_path: Path) -> None:
    more = {f"many/{number}": b"1" for number in range(many)}
    both = tree({"at/below/file": b"1", "file": b"1", **more})
    one, other = write_tree(tmp_path / "one", both), write_tree(tmp_path / "other", both)
    options = CheckOptions(SyncOptions(one_file_system=True, owner=False), times=False, modes=False)
    with ExitStack() as stack:
        for top in (one, other):
            if mounted in (top.name, "both"):
                stack.enter_context(memory_mounted(top / "at"))
                write_tree(top / "at", tree({top.name: b"mounted", "deep/er": b"1"}))
        assert check_in_turns(one, other, options, way=way).found == {}
        (one / "file").write_bytes(b"2")
        checked = check_in_turns(one, other, options, way=way)
        assert checked.found == {b"file": {"content"}}
        assert checked.problems == []


@WAYS
def test_a_lying_source_ends_the_check(way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"f{number}": b"1" for number in range(20)}
    one, other = write_tree(tmp_path / "one", tree(files)), write_tree(tmp_path / "other", tree(files))
    lies: list[Callable[[RootAnswer], list[Message]]] = [
        lambda honest: [replace(honest, files=(*honest.files[:-1], 999))],
        lambda honest: [honest, honest],
        lambda honest: [FileFailed(999, ExitCode.PARTIAL, "no")],
        lambda honest: [replace(honest, roots=honest.roots + bytes(6))],
        lambda honest: [replace(honest, group=1, roots=bytes(6 * len(honest.files)))],
        lambda _: [Done(0, 0, 0, 0, 0, 0, ExitCode.OK)],
    ]
    for lie in lies:

        def lying(message: Message, lie: Callable[[RootAnswer], list[Message]] = lie) -> list[Message]:
            return lie(message) if isinstance(message, RootAnswer) else [message]

        with monkeypatch.context() as patch:
            answering(patch, lying)
            with pytest.raises((RdcError, RuntimeError)):
                check_in_turns(one, other, way=way)


def test_a_source_may_fail_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"f{number}": b"1" for number in range(20)}
    one, other = write_tree(tmp_path / "one", tree(files)), write_tree(tmp_path / "other", tree(files))

    def failing(message: Message) -> list[Message]:
        if not isinstance(message, RootAnswer):
            return [message]
        return [FileFailed(file, ExitCode.PARTIAL, "no\x1b") for file in message.files]

    answering(monkeypatch, failing)
    checked = check_in_turns(one, other)
    assert (checked.found, checked.code, checked.done.files_compared) == ({}, ExitCode.PARTIAL, 0)
    assert [problem.path_bytes for problem in checked.problems] == sorted(map(os.fsencode, files))
    assert all(problem.message.isprintable() for problem in checked.problems)
