"""How much is kept: a size, or days; and where nothing may be."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode, TrustError
from rdc.files.root.root import Root, WritePolicy
from rdc.model.options import Backup, KeepUndo, parse_keep_undo
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Open, Role
from rdc.undoing.keeper import SyncUndo
from rdc.undoing.undo import list_syncs
from tests.support.running.syncing import command, run_sync
from tests.support.trees.trees import tree, write_tree
from tests.support.undo.undo_runs import undone

DAY = 86_400


def syncs_of(place: Path, keep: KeepUndo, count: int, size: int = 100_000) -> Path:
    """A destination whose one file was replaced that often; the old versions have `size` bytes."""
    source, top = write_tree(place / "s", tree({"f": b"0" * size})), place / "d"
    for number in range(count + 1):
        (source / "f").write_bytes(b"%d" % number * size)
        os.utime(source / "f", ns=(number * 10**9, number * 10**9))
        run_sync(source, top, SyncOptions(fsync=False, keep_undo=keep))
    return top


def numbers(top: Path) -> list[int]:
    return [sync.number for sync in list_syncs(os.fsencode(top))]


def test_a_size_drops_the_oldest_first(tmp_path: Path) -> None:
    top = syncs_of(tmp_path, KeepUndo(size=350_000), 6)
    assert numbers(top) == [5, 6, 7]
    assert sum(sync.bytes for sync in list_syncs(os.fsencode(top))) <= 350_000
    for digit in b"543":
        assert undone(top).left_alone == []
        assert (top / "f").read_bytes()[:1] == bytes([digit])


def test_one_sync_beyond_the_bound_stays_whole_and_says_so(tmp_path: Path) -> None:
    keep = KeepUndo(size=10_000)
    top = syncs_of(tmp_path, keep, 1)
    (tmp_path / "s" / "f").write_bytes(b"new")
    run = run_sync(tmp_path / "s", top, SyncOptions(fsync=False, keep_undo=keep))
    (said,) = [event for event in run.events if isinstance(event, Problem)]
    assert said.code is ExitCode.OK
    assert "stays whole until the next sync" in said.message
    assert numbers(top) == [3]
    assert undone(top).left_alone == []
    assert (top / "f").read_bytes() == b"1" * 100_000


def test_days_drop_what_is_older(tmp_path: Path) -> None:
    top = write_tree(tmp_path / "d", tree({"f": b""}))
    for day in (0, 1, 2, 9):
        root = Root.open(os.fsencode(top))
        undo = SyncUndo(root, KeepUndo(days=7), fsync=False, clock=partial(float, day * DAY))
        root = root.having(writes=WritePolicy(undo=undo))
        root.remove(b"f")
        assert undo.finish() == []
        root.release()
        (top / "f").write_bytes(b"%d" % day)
    assert [sync.seconds // DAY for sync in list_syncs(os.fsencode(top))] == [2, 9]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("10G", KeepUndo(size=10 << 30)), ("30d", KeepUndo(days=30)), ("1", KeepUndo(size=1))],
)
def test_sizes_and_days_are_read(text: str, meant: KeepUndo) -> None:
    assert parse_keep_undo(text) == meant


@pytest.mark.parametrize("text", ["", "0", "0d", "d", "-1d", "99999d", "ten", "1 d"])
def test_other_values_are_refused(text: str) -> None:
    ended = command("sync", f"--keep-undo={text}", "a/", "b/")
    assert (ended.code, len(ended.err.splitlines())) == (ExitCode.USAGE, 1)
    assert "--keep-undo" in ended.err


@pytest.mark.parametrize("other", ["--backup", "--backup-dir=old", "--inplace", "--append"])
def test_mixes_are_refused_by_name(other: str, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b""})), tmp_path / "d"
    ended = command("sync", "--keep-undo=1G", other, f"{source}/", top)
    assert ended.code == ExitCode.USAGE
    assert other.partition("=")[0] in ended.err
    assert not top.exists()


def asked(**options: Any) -> Open:
    return Open.asking(Role.DESTINATION, b"", bytes(16), SyncOptions(**options))


def test_a_directory_may_forbid_it_or_ask_for_it() -> None:
    keep, own = KeepUndo(size=1), KeepUndo(days=30)
    for access, refused in (
        (Access("it", append_only=True), asked(keep_undo=keep)),
        (Access("it", no_undo=True), asked(keep_undo=keep)),
        (Access("it", no_delete=True), asked(keep_undo=keep)),
        (Access("it", write_only=True), asked(keep_undo=keep)),
        (Access("it", keep_undo=own), asked(backup=Backup(b"~"))),
        (Access("it", keep_undo=own), asked(inplace=True)),
    ):
        with pytest.raises(TrustError, match="leave"):
            granted_options(refused, access)
    for given in (asked(keep_undo=keep), asked()):
        assert granted_options(given, Access("it", keep_undo=own)).keep_undo == own
    assert granted_options(asked(keep_undo=keep), Access("it")).keep_undo == keep
    bound = Access("it", keep_undo=own, no_delete=True)
    assert granted_options(asked(keep_undo=keep), bound).keep_undo == own


def test_the_verb_says_what_it_did(tmp_path: Path) -> None:
    top = syncs_of(tmp_path, KeepUndo(days=1), 1, size=10)
    listed = command("undo", "--list", top)
    assert (listed.code, len(listed.out.splitlines())) == (0, 2)
    assert command("undo", "-n", "-v", top).out == "changed   .\nrestored  f\n"
    ended = command("undo", "-v", top)
    assert (ended.code, ended.out) == (0, "changed   .\nrestored  f\n")
    assert "sync 2 undone: 1 restored" in ended.err
    assert '"event":"summary"' in command("undo", "--json", top).out
    assert "nothing to undo" in command("undo", "-v", top).err
    for words in (("undo",), ("undo", "a", "b"), ("undo", "--list", "-n", top), ("undo", "far:dst/")):
        assert command(*words).code == ExitCode.USAGE


def test_the_verb_takes_journals_of_dedupe(tmp_path: Path) -> None:
    here = write_tree(tmp_path / "d", tree({"a": b"same" * 5000, "b": b"same" * 5000}))
    journal = tmp_path / "links"
    assert command("dedupe", "--hardlink", "--apply", "--no-catalog", f"--journal={journal}", here).code == 0
    assert os.stat(here / "a").st_ino == os.stat(here / "b").st_ino
    assert command("undo", journal).code == 0
    assert os.stat(here / "a").st_ino != os.stat(here / "b").st_ino
