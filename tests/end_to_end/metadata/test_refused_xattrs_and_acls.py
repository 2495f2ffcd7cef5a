"""Extended attributes and ACLs that cannot be read, set or kept: what is named, and what stays."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, ProtocolError
from rdc.model.entries import Metadata
from rdc.model.preserved import AttributeKinds, pack_attributes
from rdc.plan.compare import Decision
from rdc.progress import Problem
from rdc.session.destination.finish import XattrSetter
from rdc.session.source.tree_description import Description, LikelyFiles
from rdc.session.transfer.commits import FileCommits
from rdc.session.trees.wanted_xattrs import EntrySet, TreeXattrs
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import command, run_sync
from tests.support.trees.trees import Directory, Link, tree, write_tree
from tests.support.trees.xattrs_and_acls import BOTH, acl, allow, attributes_of, expect_equal, give


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


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPERM, errno.E2BIG])
def test_one_that_cannot_be_set_is_named(
    number: int, source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.setxattr

    def refuse(path: Any, attribute: bytes, value: bytes, **how: bool) -> None:
        if attribute == b"user.long":
            raise OSError(number, os.strerror(number))
        real(path, attribute, value, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "setxattr", refuse)
        run = run_sync(source, destination, BOTH)
    assert run.done.exit is ExitCode.PARTIAL
    (problem,) = run.problems
    what = "extended attributes" if number == errno.EPERM else "attribute user.long"
    assert f"{destination}/d/e/both: cannot set its {what}" in problem.message
    assert (destination / "d/e/both").read_bytes() == b"4"
    assert run_sync(source, destination, BOTH).done.exit is ExitCode.OK
    expect_equal(source, destination)


@pytest.mark.needs("rsync")
def test_what_cannot_be_read_is_named_and_left_alone(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sync(source, destination, BOTH)
    give(destination / "marked", a="kept")
    monkeypatch.setattr("rdc.session.trees.wanted_xattrs.ATTRIBUTE_SET_BYTES", 200)
    (source / "marked").write_bytes(b"a new version")
    run = run_sync(source, destination, BOTH)
    assert run.done.exit is ExitCode.PARTIAL
    assert [problem.path_bytes for problem in run.problems] == [b"d/e/both"]
    assert "cannot read its extended attributes: they are 400" in run.problems[0].message
    monkeypatch.undo()
    expect_equal(source, destination)


def test_a_file_that_did_not_come_keeps_its_own(source: Path, destination: Path) -> None:
    run_sync(source, destination, BOTH)
    (source / "marked").write_bytes(b"a new version")
    give(source / "marked", a="of the new version")

    class Late(XattrSetter):
        """Somebody wrote to the file after it was brought up to date."""

        def run(self, top: Metadata | None, *, within: Set[bytes] | None = None) -> None:
            (destination / "marked").write_bytes(b"of somebody else")
            super().run(top, within=within)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rdc.session.destination.finish.XattrSetter", Late)
        run_sync(source, destination, BOTH)
    assert dict(attributes_of(destination).get("marked", ())).get(b"user.a") != b"of the new version"


class Written:
    """Somebody appends a line to a file at the source, once."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.done = False

    def write(self) -> None:
        if not self.done:
            self.done = True
            with self.log.open("ab") as stream:
                stream.write(b"a line\n")

    def when_decided(self, patch: pytest.MonkeyPatch) -> None:
        """Right before the destination decides what to do about the file."""
        decide = FileCommits.decide

        def write(commits: FileCommits, file: int, decision: Decision) -> None:
            if commits._entries.entry(file).path == b"d/e/both":
                self.write()
            decide(commits, file, decision)

        patch.setattr(FileCommits, "decide", write)

    def when_described_unasked(self, patch: pytest.MonkeyPatch) -> None:
        """After the source has listed its tree, right before it describes files that are likely changed."""
        likely = Description.likely

        def write(description: Description, newest: int, *, blocks: bool) -> LikelyFiles | None:
            self.write()
            return likely(description, newest, blocks=blocks)

        patch.setattr(Description, "likely", write)


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("held", [None, b"as it was ", b"as it was, or otherwise "])
@pytest.mark.parametrize("size", [10, 3_000, 300_000])
def test_a_file_that_is_written_to_meanwhile_has_them(
    size: int, held: bytes | None, source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size and mtime are not those that were listed, like a log's at every run."""
    log = source / "d/e/both"
    log.write_bytes(b"as it was " * size)
    if held is not None:
        write_tree(destination, tree({"d/e/both": held * size}))
    written = Written(log)
    written.when_decided(monkeypatch)
    written.when_described_unasked(monkeypatch)
    run = run_sync(source, destination, BOTH)
    assert written.done
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    assert log.read_bytes() == (destination / "d/e/both").read_bytes()
    expect_equal(source, destination)


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("held", [b"as it was ", b"as it was, or otherwise "])
@pytest.mark.parametrize("size", [3_000, 300_000])
def test_a_file_that_is_written_to_after_it_was_described(
    size: int, held: bytes, source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source described it unasked. It comes as it was then or as it is, or it is named and left alone."""
    log = source / "d/e/both"
    log.write_bytes(b"as it was " * size)
    listed = log.stat().st_mtime_ns
    write_tree(destination, tree({"d/e/both": held * size}))
    before = (destination / "d/e/both").stat().st_mtime_ns
    Written(log).when_decided(monkeypatch)
    run = run_sync(source, destination, BOTH)
    came = (destination / "d/e/both").read_bytes()
    mtime = (destination / "d/e/both").stat().st_mtime_ns
    if run.done.exit is ExitCode.OK:
        versions = (b"as it was " * size, listed), (log.read_bytes(), log.stat().st_mtime_ns)
        assert run.problems == []
        assert (came, mtime) in versions
    else:
        assert run.done.exit is ExitCode.VANISHED
        assert [problem.path_bytes for problem in run.problems] == [b"d/e/both"]
        assert (came, mtime) == (held * size, before)
    monkeypatch.undo()
    assert run_sync(source, destination, BOTH).done.exit is ExitCode.OK
    assert log.read_bytes() == (destination / "d/e/both").read_bytes()
    expect_equal(source, destination)


def test_where_a_file_system_keeps_none(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdc.files.facts.xattrs.attribute_kinds_of", lambda root, **_: AttributeKinds.NONE)
    run = run_sync(source, destination, BOTH)
    assert run.done.exit is ExitCode.OK
    (notice,) = [event for event in run.events if isinstance(event, Problem)]
    assert notice.code is ExitCode.OK
    assert "ACLs and extended attributes are not synced" in notice.message
    assert attributes_of(destination) == {}


@pytest.mark.needs("setpriv")
def test_who_is_not_root_keeps_user_attributes_of_files_he_may_not_write(tmp_path: Path) -> None:
    top = write_tree(tmp_path / "s", tree({"a": b"1", "d/b": b"2"}))
    give(top / "a", x="1")
    give(top / "d/b", x="1")
    give(top / "d", x="1")
    (top / "a").chmod(0o444)
    (top / "d/b").chmod(0o444)
    (top / "d").chmod(0o555)
    allow(top / "a", acl(4, owner=4, group=4, mask=4, other=4))
    tmp_path.chmod(0o777)
    for above in tmp_path.parents:
        if above.stat().st_uid == os.geteuid() and above.stat().st_mode & 0o5 != 0o5:
            above.chmod(above.stat().st_mode | 0o5)
    words = [sys.executable, "-m", "rdc", "sync", "-AX", "--no-catalog", f"{top}/", f"{tmp_path}/d/"]
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
    for _ in range(2):
        ended = subprocess.run(words, check=False, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr.replace("\r", "")) == (0, ended.stderr), ended
    assert attributes_of(tmp_path / "d") == attributes_of(top)
    assert stat.S_IMODE((tmp_path / "d/a").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "d/d").stat().st_mode) == 0o555


ONE = pack_attributes(((b"user.a", b"1"),))


def test_attributes_of_what_was_never_listed(
    source: Path, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TreeXattrs.begin

    def lie(self: TreeXattrs, *, top: bool) -> list[EntrySet]:
        return [*real(self, top=top), EntrySet(1000, ONE)]

    monkeypatch.setattr(TreeXattrs, "begin", lie)
    monkeypatch.setattr(TreeXattrs, "read", lambda *_: [])
    with pytest.raises(ProtocolError):
        sync_in_turns(source, destination, BOTH)


@pytest.mark.needs("rsync")
def test_the_command(source: Path, destination: Path) -> None:
    ended = command("sync", "-aAXi", f"{source}/", f"{destination}/")
    assert ended.code == 0
    expect_equal(source, destination)
    give(source / "plain", a="1")
    assert command("sync", "-Xi", f"{source}/", f"{destination}/").out == ".f........x plain\n"


def test_not_in_a_watch(tmp_path: Path) -> None:
    ended = command("watch", "-X", tmp_path, tmp_path / "d")
    assert ended.code == 1
    assert "-X" in ended.err or "--xattrs" in ended.err
