"""Documents in an object store: the results are those of files here. What cannot be read is named."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.documents.read import file_kinds
from rdc.errors import ExitCode, FileError, UsageError
from rdc.files.objects import object_store
from rdc.files.objects.object_file import OBJECT_AHEAD_BYTES
from rdc.files.objects.object_store import ObjectStore, ObjectUrl, is_url, parse_url
from rdc.library.similar import merge_documents, similar_documents
from rdc.limits import READ_BYTES
from rdc.model.entries import strings
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleSyntax
from rdc.model.similar import DocumentOptions, DocumentReport
from rdc.progress import Event, Problem
from tests.documents.corpora import families, write_jsonl
from tests.documents.sliced_corpus import LOOSE, sliced, write_corpus
from tests.support.object_server import SECRET, Bucket, object_server

FORGOTTEN = 1 << 40
"""So many requests are allowed where none is refused."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with object_server(tmp_path_factory.mktemp("store")) as bucket:
        yield bucket


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: Bucket) -> Path:
    """A corpus here and in the store, as s3://corpus/tree."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "tree")
    bucket.put_tree(tmp_path / "tree", "tree")
    return tmp_path / "tree"


def shown(report: DocumentReport) -> list[str]:
    """All results, without where the files are."""
    lines = [repr(one) for one in (*report.groups, *report.kept, report.summary, report.exit)]
    return [line.replace("s3://corpus/", "") for line in lines]


def messages(events: list[Event]) -> list[str]:
    return sorted([e.message.replace("s3://corpus/", "") for e in events if isinstance(e, Problem)])


def test_objects_are_as_files(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here: list[Event] = []
    there: list[Event] = []
    whole = shown(similar_documents("tree", LOOSE, reporter=here.append))
    assert shown(similar_documents("s3://corpus/tree", LOOSE, reporter=there.append)) == whole
    assert messages(there) == messages(here) != []
    monkeypatch.setattr(file_kinds, "RANGE_BYTES", 1000)
    parts = sliced(["s3://corpus/tree/"], 3)
    random.Random(1).shuffle(parts)
    found: list[Event] = []
    assert shown(merge_documents(parts, LOOSE, reporter=found.append)) == whole
    assert messages(found) == messages(here)
    for part in parts:
        content = Path(part).read_bytes()
        assert SECRET.encode() not in content
        assert b"access-key" not in content


def test_several_paths_of_both_kinds(tree: Path, bucket: Bucket) -> None:
    """What several URLs lead to is read once, and a stage knows objects by their versions."""
    bucket.put("other/single.txt", b"a text of its own in a store")
    paths = [
        "tree/deep",
        "s3://corpus/tree/deep",
        "s3://corpus/tree/deep/short.jsonl",
        "s3://corpus/other/single.txt",
    ]
    report = similar_documents([*paths, "s3://corpus/tree/deep/"], LOOSE)
    local = similar_documents("tree/deep", LOOSE).summary.documents
    assert report.summary.documents == 2 * local + 1
    staged = DocumentOptions(threshold=0.5, stage="stage")
    assert shown(similar_documents(paths, staged)) == shown(report)
    names = sorted(os.listdir("stage"))
    assert shown(similar_documents(paths, staged)) == shown(report)
    assert sorted(os.listdir("stage")) == names
    bucket.put("other/single.txt", b"a text of its own in a stone")
    similar_documents(paths, staged)
    assert len(os.listdir("stage")) == len(names) + 1


def test_filters(tree: Path) -> None:
    rules = (FilterRule(RuleAction.EXCLUDE, b"er/"), FilterRule(RuleAction.EXCLUDE, b"*.parquet"))
    here = similar_documents("tree", DocumentOptions(rules=rules))
    assert shown(similar_documents("s3://corpus/tree", DocumentOptions(rules=rules))) == shown(here)
    assert here.summary.documents < similar_documents("tree").summary.documents
    with pytest.raises(UsageError, match="rules of files in directories are not read from a store"):
        similar_documents("s3://corpus/tree", DocumentOptions(rules=(DirectoryRules(b".i", RuleSyntax.GIT),)))


def test_what_the_store_refuses_is_named_and_the_rest_goes_on(tree: Path, bucket: Bucket) -> None:
    write_jsonl(Path("here.jsonl"), families(3))
    found: list[Event] = []
    report = similar_documents(["here.jsonl", "s3://nosuch/x", "s3://corpus/gone"], reporter=found.append)
    assert messages(found) == [
        "gone: cannot list it: there is no such bucket or object",
        "s3://nosuch/x: cannot list it: there is no such bucket or object",
    ]
    assert (report.exit, report.summary.left_out) == (ExitCode.PARTIAL, 2)
    assert report.summary.documents == similar_documents("here.jsonl").summary.documents
    bucket.deny(after=0)
    try:
        found = []
        report = similar_documents(["here.jsonl", "s3://corpus/tree"], reporter=found.append)
    finally:
        bucket.deny(after=FORGOTTEN)
    assert messages(found) == [
        "tree: cannot list it: the store denies access; check the credentials and what they may read"
    ]
    assert report.exit is ExitCode.PARTIAL


def test_no_credentials(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    found: list[Event] = []
    assert similar_documents("s3://corpus/tree", reporter=found.append).exit is ExitCode.PARTIAL
    assert messages(found)[0].startswith("tree: cannot list it: no credentials were found; set AWS_PROFILE")


def test_large_objects_are_read_by_ranges(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text = " ".join(families(1))
    with Path("large.jsonl").open("w") as file:
        file.writelines(
            f'{{"padding": "{"x" * 90_000}", "text": "{text} {number}"}}\n' for number in range(100)
        )
    bucket.put("large.jsonl", Path("large.jsonl").read_bytes())
    from s3fs import S3File  # every process of the tests loads this module, and one runs these tests

    fetch, ranges = S3File._fetch_range, []

    def noted(file: S3File, start: int, end: int) -> bytes:
        ranges.append((start, end))
        return bytes(fetch(file, start, end))

    monkeypatch.setattr(S3File, "_fetch_range", noted)
    assert similar_documents("s3://corpus/large.jsonl").summary.documents == 100
    assert max(end - start for start, end in ranges) <= OBJECT_AHEAD_BYTES + READ_BYTES
    assert sum(end - start for start, end in ranges) <= Path("large.jsonl").stat().st_size
    ranges.clear()
    sliced(["s3://corpus/large.jsonl"], 2)
    assert len({start for start, _ in ranges}) >= 2
    assert sum(end - start for start, end in ranges) < 3 * Path("large.jsonl").stat().st_size


def test_an_object_that_is_replaced_while_it_is_read(bucket: Bucket) -> None:
    bucket.put("changing.jsonl", bytes(3 * OBJECT_AHEAD_BYTES))
    with ObjectStore().open(b"s3://corpus/changing.jsonl") as source:
        stream = source.stream()
        assert stream.read(10) == bytes(10)
        bucket.put("changing.jsonl", bytes(3 * OBJECT_AHEAD_BYTES) + b"1")
        with pytest.raises(OSError, match=r"."):
            stream.read()


def test_odd_names_of_objects(bucket: Bucket) -> None:
    for key in ("odd/line feed", "odd/größe/ä", "odd/x", "odd/x/y", "oddly", "odd/", "odd//x", "odd/\x01"):
        bucket.put(key, f"a text named {key}".encode())
    found = list(ObjectStore().walk(ObjectUrl("corpus", "odd"), lambda *_: True))
    listed = [one for one in found if not isinstance(one, FileError)]
    names = sorted([one.directory + name for one in listed for name in strings(one.names)])
    below = ["größe/ä".encode(), b"line feed", b"x", b"x/y", b"/x", b"\x01", b""]
    assert names == sorted([b"s3://corpus/odd/" + name for name in below])
    assert similar_documents("s3://corpus/odd").summary.documents == len(names) - 1


def test_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_url(b"s3://bucket") == parse_url(b"s3://bucket/") == ObjectUrl("bucket", "")
    assert parse_url(b"s3://my.bucket/a/b/").key == "my.bucket/a/b"
    assert not is_url(b"./s3://bucket")
    for url in (b"s3://user:hidden@bucket/x", b"s3://", b"gs://bucket", b"http://host/x", b"s3://UPPER/x"):
        with pytest.raises(
            UsageError, match=r"://: expected s3://BUCKET/NAME; credentials come from"
        ) as caught:
            parse_url(url)
        assert "hidden" not in str(caught.value)
    with pytest.raises(UsageError, match="names of objects are UTF-8"):
        parse_url(b"s3://bucket/\xff")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        UsageError, match=r"^s3://bucket/x: needs s3fs: python3 -m pip install 'rdc-sync\[s3\]'"
    ):
        object_store.parse_url(b"s3://bucket/x")
