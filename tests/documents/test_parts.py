"""Parts of documents: however a corpus is divided, stopped or read, the results are those of one search."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.documents import gather as gathering
from rdc.documents import slice_part
from rdc.documents.find import corpus
from rdc.documents.parts import part_file
from rdc.documents.parts.open_parts import PartSource
from rdc.documents.read import file_units
from rdc.errors import ExitCode, RdcError, StoppedError, UsageError
from rdc.library.similar import merge_documents, similar_documents
from rdc.model.similar import DocumentOptions
from rdc.progress import Event, Problem
from rdc.survey.container import PartError
from tests.documents.corpora import everything, families, found_clusters, write_jsonl

LOOSE = DocumentOptions(threshold=0.5)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plain files and JSONL files, some of them bad, whose names lie between each other."""
    monkeypatch.chdir(tmp_path)
    texts = families(24)
    chosen = random.Random(3)
    (tmp_path / "tree").mkdir()
    names = [f"tree/{number:03}" for number in range(70)]
    chosen.shuffle(names)
    at = 0
    for number, name in enumerate(names):
        if at >= len(texts):
            break
        if number % 10 == 0:
            rows: list[object] = [*texts[at : at + 6], 17 if number % 20 else "short"]
            write_jsonl(Path(name + ".jsonl"), rows)
            at += 6
        else:
            Path(name + ".txt").write_text(texts[at])
            at += 1
    Path("tree/bad.txt").write_bytes(b"\xff\xfe\0")
    return tmp_path / "tree"


def shares(names: list[str], count: int) -> Iterator[list[str]]:
    chosen = random.Random(count)
    chosen.shuffle(names)
    for number in range(count):
        yield names[number::count]


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_parts_give_the_results_of_one_search(tree: Path, count: int) -> None:
    whole = everything(similar_documents("tree", LOOSE, part="whole.rdcdocs"))
    names = [f"tree/{name}" for name in os.listdir(tree)]
    parts = []
    for number, share in enumerate(shares(names, count)):
        if share:
            parts.append(f"{number}.rdcdocs")
            similar_documents(share, LOOSE, part=parts[-1])
    for seed in range(2):
        random.Random(seed).shuffle(parts)
        assert everything(merge_documents(parts, LOOSE, part="merged.rdcdocs")) == whole
        assert Path("merged.rdcdocs").read_bytes() == Path("whole.rdcdocs").read_bytes()
    half = len(parts) // 2 or 1
    merge_documents(parts[:half], LOOSE, part="first.rdcdocs")
    merged = merge_documents(["first.rdcdocs", *parts[half:]], LOOSE)
    assert everything(merged) == whole
    assert merged.exit is ExitCode.PARTIAL
    assert len(found_clusters(merged)) > 3


def test_threads_and_batches_change_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = everything(similar_documents("tree", LOOSE, part="whole.rdcdocs"))
    from rdc.documents.read import text_batch, unit_reader

    monkeypatch.setattr(text_batch, "BATCH_DOCUMENTS", 2)
    monkeypatch.setattr(unit_reader, "BATCH_DOCUMENTS", 3)
    monkeypatch.setattr(file_units, "UNIT_FILES", 5)
    monkeypatch.setattr(corpus, "READ_ROWS", 2)
    for workers in (1, 3):
        options = DocumentOptions(threshold=0.5, workers=workers)
        assert everything(similar_documents("tree", options)) == whole
    similar_documents("tree", LOOSE, part="many.rdcdocs")
    assert everything(merge_documents("many.rdcdocs", LOOSE)) == whole
    assert Path("many.rdcdocs").read_bytes() == Path("whole.rdcdocs").read_bytes()


@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_blocks_end_where_documents_say(tree: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Part files of many blocks are also equal, whether they were read or merged, staged or not."""
    monkeypatch.setattr(slice_part, "BATCH_DOCUMENTS", most)
    monkeypatch.setattr(slice_part, "BATCH_BYTES", 300 * most)
    whole = everything(similar_documents("tree", LOOSE, part="whole.rdcdocs"))
    staged = DocumentOptions(threshold=0.5, stage="stage")
    assert everything(similar_documents("tree", staged, part="staged.rdcdocs")) == whole
    names = sorted(f"tree/{name}" for name in os.listdir(tree))
    for number in range(3):
        similar_documents(names[number::3], part=f"{number}.rdcdocs")
    merged = merge_documents([f"{number}.rdcdocs" for number in (2, 0, 1)], LOOSE, part="merged.rdcdocs")
    assert everything(merged) == whole
    for name in ("staged", "merged"):
        assert Path(f"{name}.rdcdocs").read_bytes() == Path("whole.rdcdocs").read_bytes()


def test_overlapping_parts(tree: Path) -> None:
    """A document that two parts hold is one, and a path that means two texts is two documents."""
    similar_documents("tree", LOOSE, part="all.rdcdocs")
    names = sorted(f"tree/{name}" for name in os.listdir(tree) if name != "bad.txt")
    similar_documents(names[:20], LOOSE, part="some.rdcdocs")
    whole = everything(merge_documents("all.rdcdocs", LOOSE))
    assert everything(merge_documents(["some.rdcdocs", "all.rdcdocs"], LOOSE))[:3] == whole[:3]
    Path("one.txt").write_text("first text of this name")
    similar_documents("one.txt", part="a.rdcdocs")
    Path("one.txt").write_text("second text of this name")
    similar_documents("one.txt", part="b.rdcdocs")
    orders = []
    for order in itertools.permutations(["a.rdcdocs", "b.rdcdocs"]):
        found = everything(merge_documents(list(order), part="both.rdcdocs"))
        orders.append((found, Path("both.rdcdocs").read_bytes()))
    assert orders[0] == orders[1]
    assert merge_documents(["a.rdcdocs", "b.rdcdocs"]).summary.documents == 2
    assert merge_documents("both.rdcdocs").summary.documents == 2


def test_problems_travel_with_parts(tree: Path) -> None:
    found: list[Event] = []
    similar_documents("tree", LOOSE, part="all.rdcdocs", reporter=found.append)
    again: list[Event] = []
    report = merge_documents("all.rdcdocs", LOOSE, reporter=again.append)
    problems = [event for event in found if isinstance(event, Problem)]
    assert {one.message for one in problems} == {e.message for e in again if isinstance(e, Problem)}
    assert any("bad.txt: expected UTF-8, found byte 0xff at byte 1" in one.message for one in problems)
    assert any("row 7: expected a text in 'text', found a number" in one.message for one in problems)
    assert report.summary.left_out == len(problems)


def damaged(content: bytes) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "short", content[:-1]
    yield "head only", content[:8]
    yield "long", content + b"x"
    for at in (20, 60, len(content) // 3, len(content) // 2, len(content) - 50):
        yield f"byte {at}", content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    yield "no last section", content[: -len(b"".join(part_file.encode_section(b"LAST", [])))]


def test_damage_is_named(tree: Path) -> None:
    similar_documents("tree", part="good.rdcdocs")
    content = Path("good.rdcdocs").read_bytes()
    for what, bad in damaged(content):
        Path("bad.rdcdocs").write_bytes(bad)
        with pytest.raises(RdcError, match=r"^bad\.rdcdocs: ") as caught:
            merge_documents(["good.rdcdocs", "bad.rdcdocs"])
        assert "\n" not in str(caught.value), what
    with pytest.raises(RdcError, match=r"^gone\.rdcdocs: cannot read the part: No such file"):
        merge_documents(["gone.rdcdocs"])
    Path("bad.rdcdocs").write_bytes(content[:7] + b"\x63" + content[8:])
    with pytest.raises(UsageError, match="a part of version 99, this rdc reads 1"):
        merge_documents("bad.rdcdocs")


def test_forged_columns(tree: Path) -> None:
    """Sections with the right digest and numbers that no search writes."""
    similar_documents("tree", LOOSE, part="good.rdcdocs")
    gathered = gathering.opened_parts([PartSource("good.rdcdocs")], lambda event: None, None)
    block = gathered.blocks[0]
    layout = block.layout
    content = gathered.parts.bytes(block, 0, layout.end)
    for at, width in (
        (0, 8),
        (8, 8),
        (24, 8),
        (layout.name_ends, 8),
        (layout.source_of, 4),
        (layout.shingle_ends, 8),
        (layout.sets - 8, 8),
    ):
        forged = content[:at] + b"\xff" * width + content[at + width :]
        spans = [*part_file.part_start("words"), *part_file.encode_section(b"BLOK", [forged])]
        Path("forged.rdcdocs").write_bytes(b"".join([*spans, *part_file.part_end([], 0)]))
        with pytest.raises(PartError, match=r"^forged\.rdcdocs: damaged at byte"):
            merge_documents("forged.rdcdocs")


def test_shingles_do_not_mix(tree: Path) -> None:
    similar_documents("tree", part="words.rdcdocs")
    similar_documents("tree", DocumentOptions(shingle="chars"), part="chars.rdcdocs")
    with pytest.raises(
        UsageError, match=r"chars\.rdcdocs: shingles of chars, those of words\.rdcdocs are of words"
    ):
        merge_documents(["words.rdcdocs", "chars.rdcdocs"])
    with pytest.raises(UsageError, match=r"chars\.rdcdocs: shingles of chars"):
        similar_documents("tree", DocumentOptions(against="chars.rdcdocs"))


def test_stage(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is staged is not read again, unless the file is another."""
    whole = everything(similar_documents("tree", LOOSE))
    staged = DocumentOptions(threshold=0.5, stage="stage")
    monkeypatch.setattr(file_units, "UNIT_FILES", 8)

    class Stop:
        def is_set(self) -> bool:
            return os.path.isdir("stage") and len(os.listdir("stage")) >= 3

    with pytest.raises(StoppedError):
        similar_documents("tree", staged, stop=Stop())
    before = {name: os.stat(f"stage/{name}").st_mtime_ns for name in os.listdir("stage")}
    assert before
    assert everything(similar_documents("tree", staged)) == whole
    after = {name: os.stat(f"stage/{name}").st_mtime_ns for name in os.listdir("stage")}
    assert before.items() <= after.items()
    assert len(after) > len(before)
    assert everything(similar_documents("tree", staged)) == whole
    Path("tree/000.txt").write_text("another text here, of a few words")
    fresh = everything(similar_documents("tree", LOOSE))
    assert everything(similar_documents("tree", staged)) == fresh != whole


def test_killed_and_resumed(tree: Path) -> None:
    """A run that is killed leaves whole staged files only. The next one writes the part of one run."""
    similar_documents("tree", DocumentOptions(stage="reference"), part="reference.rdcdocs")
    script = (
        "import os, sys\n"
        "from rdc.documents.read import file_units\n"
        "file_units.UNIT_FILES = 4\n"
        "from rdc.files.own import output_file\n"
        "rename = output_file.take_free_name\n"
        "left = [int(sys.argv[1])]\n"
        "def rename_some(*names):\n"
        "    left[0] -= 1\n"
        "    if left[0] < 0: os.kill(os.getpid(), 9)\n"
        "    rename(*names)\n"
        "output_file.take_free_name = rename_some\n"
        "import rdc\n"
        "from rdc.library.similar import similar_documents\n"
        "similar_documents('tree', rdc.model.similar.DocumentOptions(stage='stage'), part='part.rdcdocs')\n"
    ).replace("import rdc\n", "import rdc.model.similar\n")
    for renames, code in ((3, -9), (2, -9), (1000, 0)):
        done = subprocess.run([sys.executable, "-c", script, str(renames)], check=False)
        assert done.returncode == code
        assert os.path.exists("part.rdcdocs") == (code == 0)
    assert everything(merge_documents("part.rdcdocs")) == everything(merge_documents("reference.rdcdocs"))


def test_against(tree: Path) -> None:
    """New documents that resemble an old one are listed, with their copies. Old ones are not."""
    texts = families(8)
    write_jsonl(Path("old.jsonl"), [texts[0], texts[1], "nothing like it in here"])
    write_jsonl(Path("new.jsonl"), [texts[0] + " more", "all new words in this text", texts[1], texts[1]])
    similar_documents("old.jsonl", part="old.rdcdocs")
    report = similar_documents("new.jsonl", DocumentOptions(against="old.rdcdocs"))
    assert [
        (one.document.row, one.like.path_bytes, one.like.row, [copy.row for copy in one.copies])
        for one in report.matches
    ] == [(1, b"old.jsonl", 1, []), (3, b"old.jsonl", 2, [4])]
    assert not list(report.groups)
    assert [(kept.path_bytes, kept.row) for kept in report.kept] == [(b"new.jsonl", 2)]
    summary = report.summary
    assert (summary.documents, summary.groups, summary.grouped, summary.kept) == (4, 0, 3, 1)
    # The same documents on both sides resemble themselves.
    same = similar_documents("old.jsonl", DocumentOptions(against="old.rdcdocs"))
    assert [one.document.row for one in same.matches] == [1, 2, 3]
    similar_documents("new.jsonl", part="new.rdcdocs")
    merged = merge_documents("new.rdcdocs", DocumentOptions(against="old.rdcdocs"))
    assert everything(merged) == everything(report)
