"""-I, --modify-window, -W, --force and --ignore-errors: what is compared, how it comes, and what may go."""

from __future__ import annotations

import os
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.daemon.access import Access, granted_options
from rdc.errors import ExitCode, TrustError, UsageError
from rdc.limits import SMALL_MANIFEST
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.plan.compare import with_equal_time, with_equal_times
from rdc.protocol.messages import Open, Role
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, Node, describe, read_tree, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

WAYS = list(Way)
SECOND = 10**9


@pytest.mark.parametrize("whole", [False, True], ids=["by search", "whole"])
@pytest.mark.parametrize("number", [3, SMALL_MANIFEST + 1])
@pytest.mark.parametrize("way", WAYS)
def test_ignore_times_finds_content_behind_equal_times(
    way: Way, number: int, whole: bool, tmp_path: Path
) -> None:
    wanted = tree({f"d/{name}": b"%d" % name for name in range(number)} | {"large": bytes(20_000)})
    held = wanted | {b"d/1": File(b"X"), b"large": File(bytes(19_999) + b"X")}
    source, top = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", held)
    assert run_sync(source, top, way=way).done.changed == 0
    options = SyncOptions(ignore_times=True, whole_file=whole)
    rehearsed = run_sync(source, top, replace(options, dry_run=True), way=way)
    assert len(rehearsed.items) == number + 1
    assert describe(held, read_tree(top)) == []
    same = (top / "d/2").stat()
    run = run_sync(source, top, options, way=way)
    assert run.problems == []
    sent = {f"{'<' if way is Way.PUSH else '>'}f......... {name}" for name in ("d/1", "large")}
    assert sent <= set(run.items)
    assert describe(wanted, read_tree(top)) == []
    assert whole or ((top / "d/2").stat() == same and set(run.items) == sent)


@pytest.mark.parametrize("size_only", [True, False])
def test_what_outweighs_ignore_times(size_only: bool, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b"1"})), write_tree(tmp_path / "d", tree({"f": b"2"}))
    run = run_sync(source, top, SyncOptions(ignore_times=True, size_only=size_only, checksum=not size_only))
    assert run.items == ([] if size_only else [">fc........ f"])


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_file_reuses_nothing(way: Way, tmp_path: Path) -> None:
    old = os.urandom(300_000)
    wanted: dict[str, Node] = {
        "f": File(old + b"more"),
        "moved": File(old),
        "touched": File(b"same", mtime_ns=5 * SECOND),
    }
    held: dict[str, Node] = {
        "f": File(old, mtime_ns=SECOND),
        "was": File(old),
        "touched": File(b"same", mtime_ns=SECOND),
    }
    source, top = write_tree(tmp_path / "s", tree(wanted)), write_tree(tmp_path / "d", tree(held))
    run = run_sync(source, top, SyncOptions(whole_file=True, delete=True), way=way)
    assert run.problems == []
    assert describe(tree(wanted), read_tree(top)) == []
    assert (run.done.reused_bytes, run.done.moved) == (0, 0)
    assert run.done.literal_bytes == 2 * len(old) + 8


@pytest.mark.parametrize("number", [3, SMALL_MANIFEST + 1])
@pytest.mark.parametrize("way", WAYS)
def test_times_within_the_window_are_equal(way: Way, number: int, tmp_path: Path) -> None:
    names = [f"d/{name}" for name in range(number)]
    source = write_tree(tmp_path / "s", tree({name: File(b"1", mtime_ns=9 * SECOND) for name in names}))
    top = write_tree(tmp_path / "d", tree({name: File(b"2", mtime_ns=7 * SECOND + 5) for name in names}))
    for place in ("", "d"):
        os.utime(source / place, ns=(9 * SECOND, 9 * SECOND))
        os.utime(top / place, ns=(7 * SECOND, 7 * SECOND))
    before = read_tree(top)
    assert run_sync(source, top, SyncOptions(modify_window=2), way=way).items == []
    assert describe(before, read_tree(top)) == []
    (source / "d/1").chmod(0o600)
    (source / "d/2").write_bytes(b"longer")
    os.utime(source / "d/2", ns=(9 * SECOND, 9 * SECOND))
    run = run_sync(source, top, SyncOptions(modify_window=2), way=way)
    assert run.items == [".f...p..... d/1", f"{'<' if way is Way.PUSH else '>'}f.s....... d/2"]
    assert (top / "d/1").stat().st_mtime_ns == 7 * SECOND + 5
    assert (top / "d/2").stat().st_mtime_ns == 9 * SECOND
    assert run_sync(source, top, SyncOptions(modify_window=1), way=way).done.changed >= number - 1


@given(st.integers(-(10**11), 10**11), st.integers(-(10**11), 10**11), st.integers(0, 60))
def test_a_window_counts_whole_seconds(one: int, other: int, window: int) -> None:
    found = with_equal_time(
        Metadata(0, one, 0, 0), Metadata(0, other, 0, 0), SyncOptions(modify_window=window)
    )
    close = abs(one // SECOND - other // SECOND) <= window
    assert found.mtime_ns == (other if close else one)


def test_a_symlink_with_another_target_keeps_the_source_s_time(tmp_path: Path) -> None:
    from rdc.files.root.root import Root

    tops = [tmp_path / name for name in ("a", "b")]
    listings = []
    for target, top in zip(("x", "y"), tops, strict=True):
        top.mkdir()
        (top / "l").symlink_to(target)
        root = Root.open(os.fsencode(top))
        listings.append(root.list(b""))
        root.close()
    assert with_equal_times(listings[0], listings[1], SyncOptions(modify_window=10**6)) == listings[0]


@pytest.mark.parametrize(("number", "mtime"), [(259, 7), (260, 9)])
def test_a_device_with_another_number_keeps_the_source_s_time(number: int, mtime: int) -> None:
    """It is made anew. One with the same number is not."""
    one, other = (
        Listing(
            (b"d",),
            bytes([Kind.BLOCK_DEVICE]),
            array("H", [0o600]),
            array("Q", [device]),
            array("q", [seconds * SECOND]),
            array("I", [0]),
            array("I", [0]),
            (),
        )
        for device, seconds in ((number, 9), (259, 7))
    )
    assert with_equal_times(one, other, SyncOptions(modify_window=2)).mtimes[0] == mtime * SECOND


@pytest.mark.parametrize("way", WAYS)
def test_force_makes_way_without_delete(way: Way, tmp_path: Path) -> None:
    wanted = tree({"f": b"a file", "kept": b"a file, too"})
    held = tree({"f/deep/x": b"1", "f/y": b"2", "kept/z.o": b"3", "extra": b"4"})
    source, top = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", held)
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    run = run_sync(source, top, SyncOptions(rules=rules), way=way)
    assert run.done.exit == ExitCode.PARTIAL and len(run.problems) == 2
    assert "--delete or --force removes it" in run.problems[0].message
    run = run_sync(source, top, SyncOptions(rules=rules, force=True), way=way)
    assert [problem.path_bytes for problem in run.problems] == [b"kept", b"f"]
    assert "stays: a new entry did not arrive, " in run.problems[1].message
    assert (top / "f/deep/x").exists()
    (source / "kept").unlink()
    run = run_sync(source, top, SyncOptions(rules=rules, force=True), way=way)
    assert run.problems == []
    assert (top / "f").read_bytes() == b"a file"
    assert (top / "extra").exists() and (top / "kept/z.o").exists()


def test_force_counts_as_deletion(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": b"a file"}))
    top = write_tree(tmp_path / "d", tree({"f/x": b"1", "f/y": b"2"}))
    run = run_sync(source, top, SyncOptions(force=True, max_delete=1))
    assert (run.done.deleted, (top / "f").is_dir()) == (1, True)
    for access in (
        Access("it", no_delete=True),
        Access("it", append_only=True),
        Access("it", write_only=True),
    ):
        opening = Open.asking(Role.DESTINATION, b"", bytes(16), SyncOptions(force=True))
        with pytest.raises(TrustError, match="leave out --force"):
            granted_options(opening, access)


@pytest.mark.parametrize("number", [1, SMALL_MANIFEST + 1])
def test_ignore_errors_deletes_after_a_read_error(number: int) -> None:
    with place_of_nobody() as place:

        def work() -> tuple[list[str], bool, bool, bool]:
            files = {f"open/{name}": b"1" for name in range(number)}
            source = write_tree(place / "s", tree(files | {"closed/a": b"1"}))
            top = write_tree(place / "d", tree(files | {"closed/a": b"1", "extra": b"2"}))
            (source / "closed").chmod(0)
            runs = [
                run_sync(source, top, SyncOptions(delete=True, ignore_errors=ignored))
                for ignored in (False, True)
            ]
            (source / "closed").chmod(0o700)
            codes = [run.done.exit.name for run in runs]
            return codes, (top / "extra").exists(), (top / "closed").exists(), (top / "open/0").exists()

        codes, extra, closed, kept = as_nobody(work)
    assert codes == ["PARTIAL", "PARTIAL"]
    assert (extra, closed, kept) == (False, True, True)


@pytest.mark.parametrize("value", ["x", "", "1.5", "9" * 20, "-"])
def test_a_window_is_a_number(value: str, tmp_path: Path) -> None:
    ended = command("sync", f"--modify-window={value}", tmp_path, tmp_path / "d")
    assert ended.code == UsageError.code
    assert ended.err.splitlines() == [
        f"rdc: --modify-window={value}: a number of seconds is expected, such as 1"
    ]


def test_whole_files_and_rests_exclude_each_other() -> None:
    for append in ("--append", "--append-verify"):
        ended = command("sync", "-W", append, "s/", "d")
        assert (ended.code, len(ended.err.splitlines())) == (UsageError.code, 1)
        assert "--whole-file and --append exclude each other" in ended.err


def test_a_negative_window_means_nanoseconds(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": File(b"1", mtime_ns=SECOND)}))
    top = write_tree(tmp_path / "d", tree({"f": File(b"1", mtime_ns=SECOND + 1)}))
    assert "f..t" in command("sync", "-i", "-@-1", f"{source}/", top).out
    with pytest.raises(ValueError, match="modify_window: -1 is not in"):
        SyncOptions(modify_window=-1)
