"""--max-rate: every byte that a verb reads from storage is counted before."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from rdc.files.depth import ReadRate
from tests.support.running.syncing import command

RANDOM = Random(8).randbytes
LARGE = RANDOM(700_000)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was asked for, in bytes."""
    sizes: list[int] = []
    monkeypatch.setattr(ReadRate, "take", lambda _, size: sizes.append(size))
    return sizes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "below").mkdir(parents=True)
    for name, content in {"a": LARGE, "below/b": LARGE, "c": LARGE[:9_000], "below/d": LARGE[:9_000]}.items():
        (top / name).write_bytes(content)
    os.utime(top, (1, 1))
    return top


@pytest.mark.parametrize("verb", ["scan --no-zstd", "index", "dupes", "similar"])
def test_what_is_read_is_counted(verb: str, tree: Path, tmp_path: Path, taken: list[int]) -> None:
    """With its estimates of compression, a scan reads samples once more; they are counted as well."""
    catalog = f"--catalog={tmp_path / 'cache'}"
    ended = command(*verb.split(), catalog, "--max-rate=5M", tree)
    assert ended.code == 0, ended.err
    # dupes looks at both ends first, and then reads whole what is equal there.
    assert 2 * 709_000 <= sum(taken) <= 2 * 709_000 + (200_000 if verb == "dupes" else 0)


@pytest.mark.parametrize("verb", ["scan", "dupes", "similar"])
def test_a_file_that_is_named_itself_is_counted(verb: str, tree: Path, taken: list[int]) -> None:
    ended = command(verb, "--no-catalog", "--max-rate=5M", tree / "a", tree / "below" / "b")
    assert ended.code == 0, ended.err
    assert sum(taken) >= 1_400_000


def test_nothing_is_bounded_by_default(tree: Path, taken: list[int]) -> None:
    assert command("scan", "--no-catalog", tree).code == 0
    assert command("scan", "--no-catalog", "--max-rate=0", tree).code == 0
    assert taken == []


def test_a_rate_below_the_least_is_refused_by_name(tree: Path) -> None:
    ended = command("scan", "--max-rate=1000", tree)
    assert (ended.code, ended.err) == (
        1,
        "rdc: --max-rate=1000: 1M a second at least is expected, or 0 for no bound\n",
    )


def test_texts_are_counted(tree: Path, tmp_path: Path, taken: list[int]) -> None:
    """Plain files, rows and packed rows; a worker of a cluster has a rate of its own."""
    for name in ("a", "b"):
        (tree / f"{name}.jsonl").write_text('{"text": "some words"}\n' * 30_000)
    ended = command("similar", "--text", "--max-rate=5M", tree)
    assert ended.code == 23, ended.err  # random bytes are no text
    size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file())
    assert sum(taken) == size
    taken.clear()
    command("similar", "--text", "--slice=1/1", "--max-rate=5M", "-o", tmp_path / "p", tree)
    assert sum(taken) == size
