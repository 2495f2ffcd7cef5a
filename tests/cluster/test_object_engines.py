"""`scan` and `similar --text` of an object store, on Dask and on a Ray cluster with a client server.

The bytes are those of one process. Each worker has its credentials from its own environment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.clusters import dask_cluster, ray_cluster
from tests.cluster.plain_content import plain
from tests.cluster.run_program import program
from tests.documents.corpora import families
from tests.documents.sliced_corpus import write_corpus
from tests.support.object_server import SECRET, Bucket, object_server

MINE = {"AWS_ACCESS_KEY_ID": "key-of-the-user", "AWS_SECRET_ACCESS_KEY": "secret-of-the-user"}
"""Credentials of the machine that gives the work. Workers have others."""

LISTS = re.compile(r"/corpus/?\?")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with object_server(tmp_path_factory.mktemp("store")) as bucket:
        yield bucket


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where clusters write."""
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="module")
def dask(bucket: Bucket, top: Path) -> Iterator[str]:
    (top / "dask").mkdir()
    with dask_cluster(top / "dask") as url:
        yield url


@pytest.fixture(scope="module")
def ray(bucket: Bucket, top: Path) -> Iterator[str]:
    (top / "ray").mkdir()
    with ray_cluster(top / "ray") as url:
        yield url


@pytest.fixture(scope="module")
def tree(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents here, the same as s3://corpus/tree. One of their files is large enough to be divided."""
    tree = tmp_path_factory.mktemp("documents") / "tree"
    write_corpus(tree)
    with (tree / "large.jsonl").open("w") as file:
        for number, text in enumerate(families(120)):
            file.write(json.dumps({"text": f"{text} row {number}", "padding": "x" * 45_000}) + "\n")
    assert (tree / "large.jsonl").stat().st_size > 8 << 20
    bucket.put_tree(tree, "tree")
    return tree


def files(*tops: Path) -> Iterator[tuple[Path, bytes]]:
    """All files below some directories, with their content."""
    for top in tops:
        for directory, _, names in os.walk(top, followlinks=True):
            for name in names:
                if Path(directory, name).is_file():
                    yield Path(directory, name), plain(Path(directory, name).read_bytes())


def assert_no_secret(top: Path, out: Path, *shown: str) -> None:
    """No file of the cluster or of the run, no argument of a process and no output has a secret."""
    secrets = [SECRET.encode(), MINE["AWS_SECRET_ACCESS_KEY"].encode()]
    processes = [*Path("/proc").glob("[0-9]*/cmdline")]
    arguments = [(path, path.read_bytes()) for path in processes if path.exists()]
    texts = [(Path("output"), text.encode()) for text in shown]
    for path, content in [*files(top, out), *arguments, *texts]:
        assert not any(secret in content for secret in secrets), path
    for path, content in files(out):
        assert b"s3://corpus/tree" in content, path
        assert b"access-key" not in content, path
        assert b"key-of-the-user" not in content, path


def assert_keys(requests: list[tuple[str, str]]) -> None:
    """Workers read the objects, with their own key."""
    keys = {key for url, key in requests if not LISTS.match(url)}
    assert keys == {"access-key"}, requests


def scan(home: Path, *words: str | Path) -> str:
    done = program(home, "rdc", "scan", "--json", *words, "s3://corpus/tree", environ=MINE)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout


def search(home: Path, tree: Path, *words: str | Path) -> tuple[str, bytes, list[str]]:
    """The groups, what is kept, and the messages in order of the alphabet, as `told` has them."""
    keep = home / "keep"
    command = ["rdc", "similar", "--text", f"--write-kept={keep}", *words, tree, "s3://corpus/tree"]
    done = program(home, *command, environ=MINE)
    assert done.returncode == 23, done.stderr
    return done.stdout, keep.read_bytes(), told(done.stderr.splitlines())


def told(lines: list[str]) -> list[str]:
    """Which of many equal problems are told with their paths depends on the order in which slices end: their
    number does not."""
    more = re.compile(r"rdc: (\d+) more like this: (?:row \d+: )?(.*)")
    counts = {match[2]: int(match[1]) for line in lines if (match := more.fullmatch(line))}
    left = []
    for line in lines:
        text = next((text for text in counts if line.endswith(text)), None)
        if text is None:
            left.append(line)
        elif not more.fullmatch(line):
            counts[text] += 1
    return sorted(left + [f"{count} x {text}" for text, count in counts.items()])


@pytest.fixture(scope="module")
def scanned(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one process prints."""
    return scan(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def searched(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes, list[str]]:
    return search(tmp_path_factory.mktemp("one"), tree)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("url", ["dask", "ray"], indirect=True)
def test_a_scan_is_that_of_one_process(
    url: str, bucket: Bucket, scanned: str, top: Path, tmp_path: Path
) -> None:
    out = tmp_path / "parts"
    with bucket.noted() as requests:
        assert scan(tmp_path, f"--cluster={url}", "-o", out) == scanned
    assert sorted(os.listdir(out)) == [f"slice-{number}-of-8.rdcscan" for number in range(1, 9)]
    assert_keys(requests)
    assert_no_secret(top, out, scanned)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("url", ["dask", "ray"], indirect=True)
def test_documents_here_and_there_are_those_of_one_search(
    url: str,
    bucket: Bucket,
    tree: Path,
    searched: tuple[str, bytes, list[str]],
    top: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "parts"
    with bucket.noted() as requests:
        assert search(tmp_path, tree, f"--cluster={url}", "-o", out) == searched
    assert sorted(os.listdir(out)) == [f"slice-{number}-of-8.rdcdocs" for number in range(1, 9)]
    # Documents were found in both places, and each range of the large file as well.
    groups, _, messages = searched
    for place in (f"{tree}/", "s3://corpus/tree/"):
        assert f" {place}large.jsonl:100" in groups
        assert f" {place}rows.parquet:11" in groups
        assert any(f"{place}deep/latin.txt" in message for message in messages)
    assert_keys(requests)
    assert_no_secret(top, out, groups, *messages)
