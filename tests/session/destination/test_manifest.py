"""Syncs that compare manifests: what they cost when little or nothing changed, and that they miss nothing."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode
from rdc.files.root.lister import Run
from rdc.files.root.root import Root
from rdc.limits import OFFERED_ROWS, ROWS_TEXT_BYTES, SMALL_MANIFEST
from rdc.model.entries import Listed
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from rdc.session.source import tree_description
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.sync_model import outcome
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.manifest_runs import DIALLERS, LISTED, LOOKED, equal, many, received, wire
from tests.support.trees.trees import (
    LONG_AGO,
    Directory,
    File,
    Link,
    Tree,
    describe,
    read_tree,
    tree,
    write_tree,
)
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

# Nothing changed


@DIALLERS
@pytest.mark.parametrize("entries", [0, 10, 3_000])
def test_nothing_changed_costs_one_digest(entries: int, dialler: Role, tmp_path: Path) -> None:
    value = many(entries)
    source, destination = (write_tree(tmp_path / name, value) for name in ("source", "destination"))
    run = sync_in_turns(source, destination, dialler=dialler)
    assert (run.done.changed, run.done.files, run.done.exit) == (
        0,
        sum(isinstance(node, File) for node in value.values()),
        ExitCode.OK,
    )
    assert wire(run) <= 600
    assert run.done.round_trips <= 4
    assert not {"TierRequest", "RowsRequest"} & kinds(run)


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_nothing_changed_costs_one_digest_between_processes(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(500))
    destination = tmp_path / "destination"
    run_sync(source, destination, way=way)
    run = run_sync(source, destination, way=way)
    assert (run.done.changed, run.done.total_bytes) == (0, run.done.files * len(b"content"))
    assert wire(run) <= 600
    assert run.done.round_trips <= 4


@DIALLERS
def test_a_copy_costs_the_same_the_next_time(dialler: Role, tmp_path: Path) -> None:
    """Every kind of entry, owners and odd metadata included, arrives so that the digests are equal."""
    value = tree(
        {
            **{f"d/{i}": File(b"x" * i, 0o4711, LONG_AGO + i) for i in range(300)},
            "link": Link(b"nowhere", 7),
            "empty/dir": Directory(0o1700, 5),
            os.fsdecode(b"\xff\n"): b"odd",
        },
        top=Directory(0o710, 3),
    )
    source = write_tree(tmp_path / "source", value)
    if os.geteuid() == 0:
        for path in ("d/7", "link", "empty"):
            os.chown(source / path, 1234, 4321, follow_symlinks=False)
    destination = tmp_path / "destination"
    first = sync_in_turns(source, destination, dialler=dialler)
    assert first.done.changed == len(value)
    second = sync_in_turns(source, destination, dialler=dialler)
    assert second.done.changed == 0
    assert wire(second) <= 600


def test_a_subdirectory_by_name_costs_the_same(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(300))
    destination = write_tree(tmp_path / "destination", tree({"other": b"of no concern"}))
    for _ in range(2):
        run = sync_in_turns(os.fsencode(source), destination)
    assert run.done.changed == 0
    assert wire(run) <= 600
    equal(source, destination / "source")
    assert (destination / "other").exists()


def test_excluded_entries_do_not_count(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(400) | tree({"a.o": b"source's", "d/b.o": b""}))
    destination = write_tree(tmp_path / "destination", many(400) | tree({"a.o": b"ours", "e.o": b"more"}))
    options = SyncOptions(
        rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"), FilterRule(RuleAction.EXCLUDE, b"d"))
    )
    run = sync_in_turns(source, destination, options)
    assert run.done.changed == 0
    assert wire(run) <= 620
    assert (destination / "a.o").read_bytes() == b"ours"


# Little changed


@DIALLERS
def test_one_file_of_thousands(dialler: Role, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(3_000))
    destination = write_tree(tmp_path / "destination", many(3_000))
    content = random.Random(1).randbytes(20_000)
    (source / "directory-0030" / "file-01500").write_bytes(content)
    run = sync_in_turns(source, destination, dialler=dialler)
    assert received(run) == [">f.st...... directory-0030/file-01500"]
    assert wire(run) <= len(content) + 3_000
    # Four for the manifest; the search for blocks takes what is left of ten.
    assert run.done.round_trips <= 10
    assert not LISTED & kinds(run)
    equal(source, destination)
    again = sync_in_turns(source, destination, dialler=dialler)
    assert wire(again) <= 600


@DIALLERS
def test_a_bit_of_everything_among_thousands(dialler: Role, tmp_path: Path) -> None:
    before = many(3_000)
    after = dict(before)
    del after[b"directory-0010/file-00500"]
    after[b"directory-0010/new"] = File(b"new", 0o600, 5)
    after[b"directory-0011"] = Directory(0o700, 9)
    after[b"directory-0012/file-00600"] = File(b"content", 0o600)
    after[b"directory-0013/file-00650"] = Link(b"now a link")
    after[b"directory-0014/file-00700"] = Directory()
    after[b"directory-0014/file-00700/deep"] = Directory()
    after[b"directory-0014/file-00700/deep/er"] = File(b"deeper")
    for path in [p for p in after if p.startswith(b"directory-0015/")]:
        del after[path]
    for path in [p for p in after if p.startswith(b"directory-0016")]:
        del after[path]
    after[b"directory-0016"] = File(b"was a directory")
    after = dict(sorted(after.items()))
    source = write_tree(tmp_path / "source", after)
    destination = write_tree(tmp_path / "destination", before)
    run = sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert run.done.exit == ExitCode.OK
    # One file, two directories' files; one of these directories makes room in a step of its own.
    assert run.done.deleted == 1 + 50 + 50
    assert not LISTED & kinds(run)
    assert wire(run) <= 12_000
    equal(source, destination)
    assert wire(sync_in_turns(source, destination, dialler=dialler)) <= 600


@DIALLERS
def test_one_entry_of_a_large_directory(dialler: Role, tmp_path: Path) -> None:
    value = tree({f"{i:05}": b"" for i in range(20_000)})
    source, destination = (write_tree(tmp_path / name, value) for name in ("source", "destination"))
    os.utime(source / "12345", ns=(5, 5))
    (source / "12346").unlink()
    run = sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert run.done.deleted == 1
    assert not LISTED & kinds(run)
    assert wire(run) <= 4_000
    assert run.done.round_trips <= 9
    equal(source, destination)


def test_a_large_directory_next_to_nothing(tmp_path: Path) -> None:
    """20,000 entries that the destination lacks, in a tree that is not bare."""
    source = write_tree(tmp_path / "source", tree({f"large/{i:05}": b"" for i in range(20_000)}))
    destination = write_tree(tmp_path / "destination", tree({"other": b""}))
    run = sync_in_turns(source, destination)
    assert run.done.changed >= 20_000
    assert not LISTED & kinds(run)
    (destination / "other").unlink()
    os.utime(destination, ns=(os.stat(source).st_atime_ns, os.stat(source).st_mtime_ns))
    equal(source, destination)


def test_long_names_paths_and_targets_come_in_parts_that_fit(tmp_path: Path) -> None:
    """Far more text than a message holds, in rows that the destination lacks."""
    deep = "/".join(["p" * 200] * 15)
    value = tree(
        {
            **{f"long/{i:04}{'n' * 250}": b"" for i in range(3_000)},
            **{f"links/{i:04}": Link(b"%d" % i + b"t" * 4_000) for i in range(600)},
            **{f"{deep}/{i}/f": b"" for i in range(300)},
        }
    )
    source = write_tree(tmp_path / "source", value)
    destination = write_tree(tmp_path / "destination", tree({"long/other": b""}))
    run = sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False))
    rows = next(cost for cost in run.done.by_kind if cost.name == "RowsPart")
    assert rows.plain > 3 * ROWS_TEXT_BYTES
    assert not LISTED & kinds(run)
    equal(source, destination)


def test_all_mtimes_changed_move_no_content(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(3_000))
    destination = write_tree(tmp_path / "destination", many(3_000))
    rng = random.Random(2)
    for path in read_tree(source):
        os.utime(os.path.join(os.fsencode(source), path), ns=(5, rng.randrange(1 << 60)))
    run = sync_in_turns(source, destination)
    assert run.done.literal_bytes == 0
    described = sum(c.plain for c in run.done.by_kind if c.name in ("TierAnswer", "RowsPart"))
    assert described <= 12 * 3_000
    equal(source, destination)


# The listing way


@DIALLERS
@pytest.mark.parametrize(
    ("entries", "options", "listed"),
    [
        (SMALL_MANIFEST, SyncOptions(), True),
        (SMALL_MANIFEST + 1, SyncOptions(), False),
        (400, SyncOptions(checksum=True), True),
    ],
)
def test_small_trees_and_checksums_take_the_listing(
    entries: int, options: SyncOptions, listed: bool, dialler: Role, tmp_path: Path
) -> None:
    value = many(entries)
    assert len(value) - 1 == entries
    source, destination = (write_tree(tmp_path / name, value) for name in ("source", "destination"))
    (source / "directory-0001" / "file-00060").write_bytes(b"CONTENT")
    run = sync_in_turns(source, destination, options, dialler=dialler)
    assert received(run) == [f">f{'c' if options.checksum else '.'}.t...... directory-0001/file-00060"]
    assert bool(LISTED & kinds(run)) == listed
    assert bool(LOOKED & kinds(run)) == (not listed)
    assert "Manifest" not in kinds(run) or not options.checksum
    equal(source, destination)


@DIALLERS
def test_a_single_file_under_another_name(dialler: Role, tmp_path: Path) -> None:
    write_tree(tmp_path / "source", tree({"file": File(b"new", 0o600)}))
    destination = write_tree(tmp_path / "destination", many(300) | tree({"there": b"older"}))
    for count in (1, 0):
        run = sync_in_turns(
            os.fsencode(tmp_path / "source" / "file"), os.fsencode(destination / "there"), dialler=dialler
        )
        assert run.done.changed == count
        assert (destination / "there").read_bytes() == b"new"
    assert not (destination / "file").exists()
    into = sync_in_turns(os.fsencode(tmp_path / "source" / "file"), destination, dialler=dialler)
    assert received(into) == [">f+++++++++ file"]
    assert wire(sync_in_turns(os.fsencode(tmp_path / "source" / "file"), destination)) <= 600


# Owners


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@DIALLERS
def test_owners_count_where_they_are_kept(dialler: Role, tmp_path: Path) -> None:
    source, destination = (write_tree(tmp_path / name, many(400)) for name in ("source", "destination"))
    os.chown(destination / "directory-0002" / "file-00110", 1234, 0)
    apart = sync_in_turns(source, destination, SyncOptions(owner=False), dialler=dialler)
    assert (apart.done.changed, wire(apart) <= 600) == (0, True)
    kept = sync_in_turns(source, destination, SyncOptions(owner=True), dialler=dialler)
    assert kept.items == [".f....o.... directory-0002/file-00110"]
    assert (destination / "directory-0002" / "file-00110").stat().st_uid == 0


# Directories that are emptied, or cannot be read


@DIALLERS
@pytest.mark.parametrize("entries", [60, 400])
@pytest.mark.parametrize("delete", [False, True])
def test_a_directory_emptied_at_the_source(entries: int, delete: bool, dialler: Role, tmp_path: Path) -> None:
    value = many(entries) | tree({"full/a": b"a", "full/sub/b": b"b"})
    held = dict(value)
    for path in (b"full/a", b"full/sub/b", b"full/sub"):
        del value[path]
    source, destination = write_tree(tmp_path / "s", value), write_tree(tmp_path / "d", held)
    run = sync_in_turns(source, destination, SyncOptions(delete=delete), dialler=dialler)
    assert run.done.deleted == (3 if delete else 0)
    expected = outcome(value, held, delete=delete).tree
    assert describe(expected, read_tree(destination)) == []


@DIALLERS
@pytest.mark.parametrize("entries", [20, 400])
@pytest.mark.parametrize("closed", ["source", "destination"])
def test_a_directory_that_cannot_be_read_deletes_nothing(closed: str, entries: int, dialler: Role) -> None:
    """Nor can it be opened: it is somebody else's."""
    value = many(entries) | tree({"closed/a": b"a", "closed/sub/b": b"b"})
    held = value | tree({"closed/more": b"m", "closed/sub/more": b"m", "open": b"o"})
    with place_of_nobody() as place:

        def work() -> tuple[ExitCode, int, Tree]:
            tops = {"source": write_tree(place / "s", value), "destination": write_tree(place / "d", held)}
            (tops["source"] / "directory-0000" / "file-00001").write_bytes(b"changed")
            (tops[closed] / "closed").chmod(0o000)
            try:
                options = SyncOptions(delete=True, fsync=False)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("rdc.session.destination.deletion.borrow_permissions", lambda *_: False)
                    run = sync_in_turns(tops["source"], tops["destination"], options, dialler=dialler)
            finally:
                for top in tops.values():
                    (top / "closed").chmod(0o755)
            return run.done.exit, run.done.deleted, read_tree(tops["destination"])

        code, deleted, found = as_nobody(work)
    assert code == ExitCode.PARTIAL
    kept = {path for path in held if path.startswith(b"closed")}
    assert kept <= found.keys()
    changed = found[b"directory-0000/file-00001"]
    assert isinstance(changed, File)
    assert changed.content == b"changed"
    # Nor does anything go elsewhere: what the source has there may be new.
    assert deleted == 0


# Short references that collide


# Any tree over any other, compared by manifest however small


class Reads:
    """The directories that are read below one tree, by the calls of walks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, top: Path) -> None:
        self.paths: list[bytes] = []
        one, many_ = Root.list_unviewed, Root.list_many

        def list_unviewed(root: Root, path: bytes, **more: Any) -> Listed:
            if root.label.rstrip(b"/") == os.fsencode(top):
                self.paths.append(path)
            return one(root, path, **more)

        def list_many(root: Root, todo: Sequence[bytes], **more: Any) -> Run | None:
            run = many_(root, todo, **more)
            if run is not None and root.label.rstrip(b"/") == os.fsencode(top):
                self.paths += run.directories.paths + ([] if run.alone is None else [run.alone[0]])
            return run

        monkeypatch.setattr(Root, "list_unviewed", list_unviewed)
        monkeypatch.setattr(Root, "list_many", list_many)


@pytest.mark.parametrize("rows", [OFFERED_ROWS, 0])
def test_what_was_offered_is_not_read_again_for_a_first_copy(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source walks while the destination answers, which wants the whole listing."""
    value = many(2_000) | tree({"empty": Directory(0o755, 5), "d/e/f": b"x", "link": Link(b"to", 7)})
    source = write_tree(tmp_path / "source", value)
    reads = Reads(monkeypatch, source)
    monkeypatch.setattr(tree_description, "OFFERED_ROWS", rows)
    run = sync_in_turns(source, tmp_path / "destination", dialler=Role.SOURCE)
    assert read_tree(tmp_path / "destination") == read_tree(source)
    assert "ListingPart" in kinds(run)
    repeated = len(reads.paths) - len(set(reads.paths))
    assert repeated == 0 if rows else repeated > 20
