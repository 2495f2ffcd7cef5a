"""Objects that change, stores that lie or do not answer: each is named, and the rest of the scan goes on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.files.objects import object_file, object_store
from rdc.files.objects.object_store import SILENT_CALLS, ObjectLister, ObjectStore, PageReader
from rdc.library.scans import scan
from rdc.model.scan import ScanOptions, ScanReport
from rdc.model.selection import DirectoryRules, RuleSyntax
from rdc.survey.scan.objects import FIRST_DEPTH
from tests.support.object_server import Bucket, object_server

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


def told(report: ScanReport) -> list[str]:
    return sorted(one.message.replace("s3://corpus/", "") for one in report.errors)


def test_dots_lead_to_no_other_object(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of the web take dots for ways, so the store answers about another object."""
    bucket.put("up", b"another content")
    bucket.put("dots/x", b"beside it")
    ask = ObjectStore._ask

    def dotted(store: ObjectStore, method: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if asked.get("MaxKeys") == 1:
            return ask(store, method, asked)
        if asked["Prefix"] == "dots/":
            return {**ask(store, method, asked), "CommonPrefixes": [{"Prefix": "dots/../"}]}
        return of("dots/../up", len(b"another content"))

    monkeypatch.setattr(ObjectStore, "_ask", dotted)
    report = scan("s3://corpus/dots", catalog=None)
    assert (report.files, report.exit) == (1, ExitCode.PARTIAL)
    assert told(report)[0].startswith("dots/../up: cannot read it: ")


class Answers:
    """Stands for a store that lists and gives what it wants."""

    req_kw: Mapping[str, Any] = {}

    def __init__(self, *pages: Mapping[str, Any]) -> None:
        self._pages = itertools.cycle(pages)
        self.calls = 0

    def call_s3(self, method: str, **asked: Any) -> Mapping[str, Any]:
        self.calls += 1
        return {} if asked.get("MaxKeys") == 1 else next(self._pages)


def of(key: str, size: object = 1) -> dict[str, Any]:
    return {"Contents": [{"Key": key, "Size": size, "ETag": "x"}]}


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([of("d/x", None)], "expected the size of an object, found None"),
        ([of("d/x", -1)], "expected the size of an object, found -1"),
        ([of("d/x", 1 << 64)], "expected the size of an object, found 18446744073709551616"),
        ([of("d/x", "9" * 999)], "expected the size of an object, found " + "9" * 40),
        ([of("elsewhere")], "expected names below the one that was asked for, found others"),
        ([of("d/" + "x" * 1025)], "expected names below the one that was asked for, found others"),
        ([of("d/x/y")], "expected the objects of one directory, found others"),
        (
            [{"CommonPrefixes": [{"Prefix": "d/x"}]}],
            "expected the directories of one directory, found others",
        ),
        ([{"CommonPrefixes": [{"Prefix": "d/x/y/"}]}], "expected the directories of one directory, found"),
        ([{"CommonPrefixes": [{"Prefix": "d/"}]}], "expected the directories of one directory, found others"),
        ([{"IsTruncated": True, "NextContinuationToken": "t"}], "expected the listing to end, found no end"),
        (
            [{"IsTruncated": True, "NextContinuationToken": f"{n}"} for n in range(2)],
            "expected the listing to end, found no end",
        ),
        (
            [{**of("d/x"), "IsTruncated": True, "NextContinuationToken": f"{n}"} for n in range(2)],
            "MiB of names",
        ),
    ],
)
def test_stores_that_lie(
    pages: list[Mapping[str, Any]], expected: str, monkeypatch: pytest.MonkeyPatch, bucket: Bucket
) -> None:
    monkeypatch.setattr("rdc.files.objects.object_store.DIRECTORY_BYTES", 1 << 20)
    monkeypatch.setattr("fsspec.filesystem", lambda *_, **__: Answers(*pages))
    (error,) = scan("s3://corpus/d", catalog=None).errors
    assert error.message.startswith("s3://corpus/d: cannot list it: ")
    assert expected in error.message
    assert error.code is ExitCode.PARTIAL


def test_names_with_nul_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers({"Contents": [of(f"d/{name}", 0)["Contents"][0] for name in ("a", "b\0c", "d")]})
    monkeypatch.setattr("fsspec.filesystem", lambda *_, **__: answers)
    report = scan("s3://corpus/d", catalog=None)
    assert (report.files, told(report)) == (2, ["d/: 1 names with NUL bytes; rename these objects"])


def changing(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, key: str, content: bytes, after: int) -> None:
    """Puts `content` at `key` after so many reads of any object."""
    read, reads = ObjectStore.read, itertools.count()

    def noted(store: ObjectStore, *words: Any, **named: Any) -> bytes:
        if next(reads) == after:
            bucket.put(key, content)
        return read(store, *words, **named)

    monkeypatch.setattr(ObjectStore, "read", noted)


@pytest.mark.parametrize("size", [100, 300_000, 5 << 20])
@pytest.mark.parametrize("content", [b"", b"1" * 100, bytes(6 << 20)])
def test_objects_that_change(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, size: int, content: bytes
) -> None:
    """Each size is read in its own way. What was listed is read, or nothing."""
    bucket.put("changing/a", bytes(size))
    bucket.put("changing/b", b"the rest")
    changing(bucket, monkeypatch, "changing/a", content, 0)
    report = scan("s3://corpus/changing", catalog=None)
    assert (report.files, report.bytes, report.exit) == (1, 8, ExitCode.PARTIAL)
    (message,) = told(report)
    assert message.startswith("changing/a: cannot read it: expected the ")
    assert message.endswith(" that was listed, found another one; run again once it is left alone")


def test_a_large_object_that_changes_while_it_is_read(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before counts as a file of its own, as of files."""
    bucket.put("slow/a", bytes(30 << 20))
    bucket.put("slow/b", b"the rest")
    changing(bucket, monkeypatch, "slow/a", b"1", 4)
    report = scan("s3://corpus/slow", ScanOptions(compress=False), catalog=None)
    assert (report.files, report.exit) == (2, ExitCode.PARTIAL)
    assert object_file.RANGE_BYTES < report.bytes < 30 << 20
    assert len(report.errors) == 1


@pytest.mark.parametrize("found", [0, 99, 101, 1 << 30])
def test_objects_of_another_length_are_bounded(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, found: int
) -> None:
    """The version is the one that was listed, and still the content has another length."""
    taken = [0]

    class Body:
        async def read(self, most: int) -> bytes:
            span = bytes(min(most, found - taken[0], 1 << 16))
            taken[0] += len(span)
            return span

        def close(self) -> None: ...

    async def answer(_store: object, _method: str, **asked: Any) -> Mapping[str, Any]:
        taken[0] = 0
        return {"Body": Body(), "ETag": "x"}

    monkeypatch.setattr("s3fs.S3FileSystem._call_s3", answer)
    pages = {"": of("lies/x", 100), "1": {}}
    monkeypatch.setattr(
        ObjectStore, "_ask", lambda _store, _method, asked: pages["1" if "MaxKeys" in asked else ""]
    )
    report = scan("s3://corpus/lies", catalog=None)
    shown = "more" if found > 100 else f"{found}"
    assert told(report) == [
        f"lies/x: cannot read it: expected 100 bytes, found {shown}; run again once it is left alone"
    ]
    assert taken[0] <= 101


def test_what_the_store_refuses_is_named_and_the_rest_goes_on(
    top: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "here").write_bytes(b"12345")
    for number in range(40):
        bucket.put(f"some/{number}", b"%d" % number)
    report = scan(["s3://nosuch/x", "s3://nosuch", "s3://corpus/gone", "here"], catalog=None)
    reason = "cannot list it: there is no such bucket or object"
    assert told(report) == [f"gone: {reason}", f"s3://nosuch/x: {reason}", f"s3://nosuch: {reason}"]
    assert (report.files, report.exit) == (1, ExitCode.PARTIAL)
    denied = "the store denies access; check the credentials and what they may read"
    bucket.deny(after=0)
    try:
        assert told(scan("s3://corpus/some", catalog=None)) == [f"some: cannot list it: {denied}"]
        bucket.deny(after=2)
        report = scan("s3://corpus/some", catalog=None)
    finally:
        bucket.deny(after=FORGOTTEN)
    assert told(report) == sorted(f"some/{number}: cannot read it: {denied}" for number in range(40))
    read = ObjectStore.read

    def one_denied(store: ObjectStore, bucket: str, key: str, *words: Any, **named: Any) -> bytes:
        if key == "some/7":
            raise PermissionError
        return read(store, bucket, key, *words, **named)

    monkeypatch.setattr(ObjectStore, "read", one_denied)
    report = scan("s3://corpus/some", catalog=None)
    assert (report.files, told(report)) == (39, [f"some/7: cannot read it: {denied}"])


def test_what_is_archived_is_named(bucket: Bucket) -> None:
    bucket.put("cold/a", b"at hand")
    bucket.put("cold/b", b"archived", StorageClass="GLACIER")
    report = scan("s3://corpus/cold", catalog=None)
    assert (report.files, told(report)) == (
        1,
        ["cold/b: cannot read it: it is archived; restore it, and run again"],
    )


def test_no_credentials(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (message,) = told(scan("s3://corpus/tree", catalog=None))
    assert message.startswith("tree: cannot list it: no credentials were found; set AWS_PROFILE")


def test_a_store_that_is_gone_is_not_asked_for_each_object(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    silent = "cannot list it: the store does not answer; check the endpoint and the network, and run again"
    assert told(scan("s3://corpus/x", catalog=None)) == [f"x: {silent}"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.url)
    for number in range(60):
        bucket.put(f"leaving/{number}", b"%d" % number)
    calls = []

    async def lost(_store: object, method: str, **_: object) -> None:
        calls.append(method)
        raise TimeoutError

    take = ObjectLister.take

    def listed(lister: ObjectLister, prefix: str, following: Sequence[str]) -> PageReader:
        pages = take(lister, prefix, following)
        monkeypatch.setattr("s3fs.S3FileSystem._call_s3", lost)
        return pages

    monkeypatch.setattr(ObjectLister, "take", listed)
    report = scan("s3://corpus/leaving", catalog=None)
    assert (len(report.errors) + report.more_errors, report.exit) == (60, ExitCode.PARTIAL)
    assert {one.message.partition(": cannot read it: ")[2] for one in report.errors} == {
        "the store does not answer; check the endpoint and the network, and run again"
    }
    # Those that are under way by then are few.
    assert SILENT_CALLS <= len(calls) <= SILENT_CALLS + 2 * FIRST_DEPTH


def test_what_means_nothing_for_objects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for options, expected in (
        (ScanOptions(one_file_system=True), r"^s3://corpus/x: -x is for file systems, and a store has none"),
        (
            ScanOptions(rules=(DirectoryRules(b".i", RuleSyntax.GIT),)),
            "rules of files in directories are not",
        ),
    ):
        with pytest.raises(UsageError, match=expected):
            scan(["here", "s3://corpus/x"], options, catalog=None)
    for url in ("s3://user:hidden@bucket/x", "gs://bucket/x"):
        with pytest.raises(UsageError, match="://: expected s3://BUCKET/NAME; credentials come") as caught:
            scan(url, catalog=None)
        assert "hidden" not in str(caught.value)
    monkeypatch.setattr(object_store, "find_spec", lambda _: None, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        UsageError, match=r"s3://corpus/x: needs s3fs: python3 -m pip install 'rdc-sync\[s3\]'"
    ):
        scan("s3://corpus/x", catalog=None)
