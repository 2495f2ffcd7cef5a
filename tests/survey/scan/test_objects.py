"""A scan of objects counts what a scan of the same content in files does. What cannot be read is named."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.catalog import Catalog
from rdc.errors import ExitCode
from rdc.files.depth import ReadRate
from rdc.files.objects import object_file
from rdc.files.objects.object_store import ObjectStore
from rdc.library.scans import scan
from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanReport, ScanSlice
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, Problem
from rdc.survey.parts.merge import PartSource, merge_parts
from rdc.survey.parts.part_file import encode_part
from rdc.survey.report.terminal import scan_json
from rdc.survey.scan.scanner import survey
from rdc.survey.scan.summary import report_of
from tests.library.stop_after import StopAfter
from tests.support.object_server import SECRET, Bucket, object_server
from tests.support.share import examples
from tests.support.trees.linked_tree import linked_tree

FIXED = ScanOptions(fixed=("fixed-4096",))

FORGOTTEN = 1 << 40
"""So many requests are allowed where none is refused."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with object_server(tmp_path_factory.mktemp("store")) as bucket:
        yield bucket


@pytest.fixture(autouse=True)
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plain_tree(top: Path, name: str, seed: int) -> None:
    """A random tree without links, holes and special files, which a store has not."""
    linked = top / f"linked{seed}"
    linked_tree(linked, seed)
    for path in sorted(linked.rglob("*")):
        if path.is_file() and not path.is_symlink():
            plain = top / name / path.relative_to(linked)
            plain.parent.mkdir(parents=True, exist_ok=True)
            plain.write_bytes(path.read_bytes())


def plain(document: str) -> str:
    """A JSON document without what a store has not, and without where the content is."""
    parsed = json.loads(document.replace("s3://corpus/", ""))
    del parsed["allocated_bytes"], parsed["ages"]
    return json.dumps(parsed)


def told(report: ScanReport) -> list[str]:
    return sorted(one.message.replace("s3://corpus/", "") for one in report.errors)


def parts(paths: list[str], of: int, options: ScanOptions = FIXED) -> list[bytes]:
    slices = [replace(options, slice=ScanSlice(number, of)) for number in range(1, of + 1)]
    return [b"".join(encode_part(survey(paths, one))) for one in slices]


def merged(parts: list[bytes], memory: int = DEFAULT_MEMORY) -> str:
    sources = [PartSource(f"p{number}", partial(io.BytesIO, part)) for number, part in enumerate(parts)]
    return scan_json(report_of(merge_parts(sources, memory)))


def in_pages(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    """Has the store list three names at a time, in any order."""
    ask = ObjectStore._ask

    def shuffled(store: ObjectStore, method: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = dict(ask(store, method, {"MaxKeys": 3, **asked}))
        for name in ("Contents", "CommonPrefixes"):
            answer[name] = rng.sample(answer.get(name, []), len(answer.get(name, [])))
        return answer

    monkeypatch.setattr(ObjectStore, "_ask", shuffled)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_objects_are_as_files(top: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """One scan, its slices, and slices of a listing that comes in pages and in another order."""
    rng = random.Random(seed)
    name = f"tree{seed}"
    plain_tree(top, name, seed)
    (top / name / "large").write_bytes(rng.randbytes(5 << 20))
    bucket.put_tree(top / name, name)
    options = replace((FIXED, ScanOptions())[seed % 2], memory=(DEFAULT_MEMORY, 12_000)[seed // 2 % 2])
    here = plain(scan_json(scan(name, options, catalog=None)))
    assert plain(scan_json(scan(f"s3://corpus/{name}", options, catalog=None))) == here
    in_pages(monkeypatch, rng)
    sliced = parts([f"s3://corpus/{name}"], rng.choice((2, 3)), options)
    rng.shuffle(sliced)
    assert plain(merged(sliced, options.memory)) == here
    assert not any(SECRET.encode() in part or b"access-key" in part for part in sliced)


def test_parts_of_both_kinds(top: Path, bucket: Bucket) -> None:
    plain_tree(top, "mixed", 11)
    plain_tree(top, "other", 12)
    bucket.put_tree(top / "mixed", "mixed")
    paths = ["s3://corpus/mixed", "other", "mixed"]
    whole = scan_json(scan(paths, FIXED, catalog=None))
    assert merged([b"".join(encode_part(survey([path], FIXED))) for path in paths]) == whole
    local = scan(["mixed", "other"], FIXED, catalog=None)
    document = json.loads(whole)
    assert document["files"] == local.files + scan("mixed", FIXED, catalog=None).files
    (level,) = (level for level in document["levels"] if level["name"] == "cdc-4096")
    assert level["unique_bytes"] == local.levels[1].unique_bytes


@pytest.mark.parametrize("turned", range(4))
def test_what_several_paths_lead_to_counts_once(top: Path, bucket: Bucket, turned: int) -> None:
    for key in ("over/a/x", "over/a/b/y", "over/a-b/z", "over/a/x/below", "over/twin"):
        bucket.put(key, b"twins" if key in ("over/twin", "over/a-b/z") else key.encode() * 9)
    (top / "file").write_bytes(b"here")
    events: list[Event] = []
    given = ["s3://corpus/over", "s3://corpus/over/a/x", "s3://corpus/over/a/b", "file"]
    paths = [*given[turned:], *given[:turned], "s3://corpus/over/"]
    report = scan(paths, FIXED, catalog=None, reporter=events.append)
    assert (report.files, report.hardlinks, report.duplicate_bytes) == (6, 0, 5)
    assert merged(parts(paths, 2)) == scan_json(report)
    assert {one.message.partition(": ")[2] for one in events if isinstance(one, Problem)} == {
        "counted already under another path"
    }


def test_filters_and_an_object_with_the_name_of_a_directory(bucket: Bucket) -> None:
    for key in ("both/a/x", "both/a/b/y", "both/a/x/below", "both/z"):
        bucket.put(key, key.encode())
    report = scan("s3://corpus/both/a/x", catalog=None)
    assert [one.path_bytes for one in report.directories] == [b"s3://corpus/both/a", b"s3://corpus/both/a/x"]
    rules = (FilterRule(RuleAction.EXCLUDE, b"b/"), FilterRule(RuleAction.EXCLUDE, b"x"))
    assert scan("s3://corpus/both", ScanOptions(rules=rules), catalog=None).files == 1
    paths = ["s3://corpus/both", "s3://corpus/both/a/b", "s3://corpus/both/a/x"]
    assert scan(paths, ScanOptions(rules=rules), catalog=None).files == 4


HOSTILE = [
    *["h/", "h//", "h//two", "h///three", "h/marker/", "h/content/", "h/a", "h/a/b", "h/...", "h/.dot/x"],
    *["h/\x01\x1b[2J", "h/\u202ereversed", "h/sp ace+%2F?versionId=1", "h/" + "k" * 1022],
]


def test_hostile_names(bucket: Bucket) -> None:
    """Each object counts once, whatever its key. What is printed is one line."""
    contents = {key: b"" if key in ("h/", "h//", "h/marker/") else key.encode() * 7 for key in HOSTILE}
    for key, content in contents.items():
        bucket.put(key, content)
    report = scan("s3://corpus/h", catalog=None)
    assert told(report) == []
    assert report.files == len([content for content in contents.values() if content])
    assert report.bytes == sum(map(len, contents.values()))
    named = {one.path_bytes.decode() for one in report.directories}
    assert {"s3://corpus/h/", "s3://corpus/h//", "s3://corpus/h/a", "s3://corpus/h/content"} <= named
    sliced = merged(parts(["s3://corpus/h"], 2))
    assert sliced == scan_json(scan("s3://corpus/h", FIXED, catalog=None))
    (event,) = scan("s3://corpus/line\nfeed/y", catalog=None).errors
    assert event.message.isprintable()


def test_reads_are_ranges_and_count(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read twice but what of a large object is sampled, and --max-rate counts all of it."""
    rng = random.Random(3)
    sizes = [0, 1, 70_000, 200_000, 3 << 20, (9 << 20) + 5]
    for number, size in enumerate(sizes):
        bucket.put(f"ranges/{number}", rng.randbytes(size))
    lengths: list[int] = []
    monkeypatch.setattr(ReadRate, "take", lambda _rate, size: lengths.append(size))
    options = ScanOptions(compress=False, max_rate=1 << 30)
    report = scan("s3://corpus/ranges", options, catalog=None)
    assert report.bytes == sum(lengths) == sum(sizes)
    assert max(lengths) == object_file.RANGE_BYTES
    lengths.clear()
    scan("s3://corpus/ranges", replace(options, compress=True, fixed=("fixed-4096",)), catalog=None)
    assert sum(lengths) <= sum(sizes) + (4 << 20)


def test_a_catalog_knows_nothing_of_objects(top: Path, bucket: Bucket) -> None:
    for number in range(30):
        bucket.put(f"known/{number}", bytes([number]) * 10_000 * number)
    with Catalog(top / "catalog") as catalog:
        first, second = (scan("s3://corpus/known", catalog=catalog) for _ in range(2))
    assert first.coverage.known_bytes == second.coverage.known_bytes == 0
    assert first.levels == second.levels


def test_a_scan_that_is_stopped_reports_what_it_read(bucket: Bucket) -> None:
    for number in range(8):
        bucket.put(f"stopped/{number}/x", b"x" * 100)

    class AtOnce:
        def is_set(self) -> bool:
            return True

    report = scan("s3://corpus/stopped", catalog=None, stop=AtOnce())
    assert (report.files, report.exit) == (0, ExitCode.INTERRUPTED)
    for size in (100, 200_000):
        for number in range(50):
            bucket.put(f"stopping/{size}/{number}", b"x" * size)
        # More calls than a walk makes, and fewer than there are objects.
        report = scan(f"s3://corpus/stopping/{size}", catalog=None, stop=StopAfter(30))
        assert (report.exit, report.errors, report.coverage.reason) == (20, (), "interrupted")
        assert report.files <= 30
    report = scan("s3://corpus/stopped", ScanOptions(sample=0.5), catalog=None)
    assert report.files == 4
