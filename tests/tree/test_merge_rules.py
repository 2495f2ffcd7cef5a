"""Merge rules put in place what rsync's do, or fail where rsync's fail."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.limits import FILTER_BYTES, FILTER_MERGE_DEPTH, FILTER_RULES
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction
from rdc.tree import filter_list
from rdc.tree.rule_text import RuleListBuilder
from tests.support.share import examples

EXCLUDE, INCLUDE = RuleAction.EXCLUDE, RuleAction.INCLUDE

NAMES = ["!", "# x", "+", "+ a.o", "- a.o", "-_a.o", ";x", "a.o", "b.o", "m0", "m1", "m2", "x y"]
LINES = ["- a.o", "+ a.o", "-_a.o", "+_b.o", "a.o", "b.o", "- *.o", "!", "clear", "# x", ";x", "", "x y"]
LINES += ["- x y", "- *", "exclude b.o", "include_a.o", "+", " - a.o", "a.o b.o", "a.o ! b.o", "- m*", "-_m*"]
HEADS = [".", ".-", ".+", ".C", ".e", ".w", ".n", ".e-", ".w-", ".+we", ".,e", "merge", "merge,-", "merge,C"]
HEADS += ["merge,wn", ".-+", ".CC", ".--", "mergew", ".,"]


def rules_of(texts: list[bytes], folder: Path) -> tuple[FilterRule | DirectoryRules, ...]:
    builder = RuleListBuilder(lambda name: (folder / name).read_bytes())
    for text in texts:
        builder.add_filter(text)
    return builder.rules()


def taken_by_rsync(texts: list[bytes], folder: Path) -> set[bytes] | ExitCode:
    """The names that rsync takes of folder/tree, or its exit code if the rules are a mistake."""
    argv = [
        b"rsync",
        b"-rn",
        b"--out-format=%n",
        *(b"--filter=" + text for text in texts),
        b"tree/",
        b"none/",
    ]
    done = subprocess.run(argv, capture_output=True, cwd=folder, check=False)
    if done.returncode:
        return ExitCode(done.returncode)
    return {line for line in done.stdout.split(b"\n") if line and line != b"./" and b"created" not in line}


def taken_by_rdc(texts: list[bytes], folder: Path) -> set[bytes] | ExitCode:
    try:
        rules = filter_list(rules_of(texts, folder))
    except UsageError as error:
        return error.code
    except FileNotFoundError:
        return ExitCode.FILE_IO
    return {name.encode() for name in NAMES if not rules.excluded(name.encode(), False)}


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("seed", range(examples(6)))
def test_takes_what_rsync_takes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    (tmp_path / "tree").mkdir()
    for name in NAMES:
        (tmp_path / "tree" / name).touch()
    refused = filtered = 0
    for _ in range(60):
        for number in range(3):
            lines = rng.choices(LINES, k=rng.randint(0, 4))
            if number:
                head = rng.choice(HEADS)
                lines.insert(rng.randint(0, len(lines)), f"{head}{rng.choice(' _')}m{number - 1}")
            (tmp_path / f"m{number}").write_text(rng.choice(["\n", "\r\n"]).join(lines))
        head = rng.choice(HEADS)
        texts = [f"{head}{rng.choice(' _')}m{rng.randrange(3)}".encode()]
        texts.insert(rng.randrange(2), rng.choice([b"- b.o", b"+ a.o", b"- *", b"!"]))
        expected = taken_by_rsync(texts, tmp_path)
        files = [(tmp_path / f"m{number}").read_bytes() for number in range(3)]
        assert taken_by_rdc(texts, tmp_path) == expected, (texts, files)
        if isinstance(expected, ExitCode):
            refused += 1
        else:
            filtered += len(expected) < len(NAMES)
    assert refused > 5
    assert filtered > 5


def test_a_merge_file_stands_in_place_of_its_rule(tmp_path: Path) -> None:
    (tmp_path / "outer").write_bytes(b"- a\n.-e inner\n+ c\n")
    (tmp_path / "inner").write_bytes(b"b\n- b\n")
    wanted = [(EXCLUDE, b"a"), (EXCLUDE, b"inner"), (EXCLUDE, b"b"), (EXCLUDE, b"- b"), (INCLUDE, b"c")]
    assert rules_of([b"merge outer"], tmp_path) == tuple(FilterRule(*pair) for pair in wanted)


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(b"- a\n\nQ b\n")
    with pytest.raises(UsageError, match=r"^rules: line 3: Q b: not a filter rule"):
        rules_of([b". rules"], tmp_path)


def test_merging_ends_at_its_bounds(tmp_path: Path) -> None:
    (tmp_path / "self").write_bytes(b". self\n")
    with pytest.raises(UsageError, match=f"more than {FILTER_MERGE_DEPTH} deep"):
        rules_of([b". self"], tmp_path)
    (tmp_path / "long").write_bytes(b"#" * (FILTER_BYTES // 2 + 1))
    with pytest.raises(UsageError, match="bytes together"):
        rules_of([b". long", b". long"], tmp_path)
    (tmp_path / "many").write_bytes(b"a\n" * (FILTER_RULES + 1))
    with pytest.raises(UsageError, match=f"line {FILTER_RULES + 1}: {FILTER_RULES:,} filter"):
        rules_of([b".- many"], tmp_path)


def test_names_of_any_bytes(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"- a\n")
    assert rules_of([b". \xff"], tmp_path) == (FilterRule(EXCLUDE, b"a"),)
