"""Groups by the places of their files: across PATHs, beside a reference, from a list and from a report."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

import rdc
from rdc.cli import main
from rdc.errors import ExitCode
from tests.support.running.fake_environment import FakeProcess

PLACES = ("one", "two", "three")


def populate(top: Path, seed: int) -> dict[str, list[str]]:
    """Write files of a few contents below PLACES, and return the paths of each content in their order."""
    numbers = random.Random(seed)
    found: dict[str, list[str]] = defaultdict(list)
    for place in PLACES:
        for number in range(numbers.randrange(6)):
            content = f"content {numbers.randrange(5)}"
            path = top / place / str(number % 2) / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            found[content].append(str(path))
        (top / place).mkdir(exist_ok=True)
    return found


def place_of(path: str, top: Path) -> str:
    return Path(path).relative_to(top).parts[0]


def found(report: rdc.DuplicateReport) -> list[list[str]]:
    return sorted(sorted(file.path for file in group.files) for group in report.groups)


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_a_plain_search_that_meet_the_condition(seed: int, tmp_path: Path) -> None:
    contents = populate(tmp_path, seed)
    paths = [str(tmp_path / place) for place in PLACES]
    groups = [sorted(group) for group in contents.values() if len(group) > 1]
    assert found(rdc.dupes(paths, catalog=None)) == sorted(groups)
    across = [group for group in groups if len({place_of(path, tmp_path) for path in group}) > 1]
    report = rdc.dupes(paths, across=True, catalog=None)
    assert found(report) == sorted(across)
    assert report.summary.groups == len(across)

    known = rdc.dupes(paths[1:], reference=paths[:1], catalog=None)
    expected = []
    for group in groups:
        inside = [path for path in group if place_of(path, tmp_path) == "one"]
        outside = [path for path in group if place_of(path, tmp_path) != "one"]
        if inside and outside:
            expected.append(sorted([inside[0], *outside]))
    assert all(place_of(next(iter(group.files)).path, tmp_path) == "one" for group in known.groups)
    assert [len(group) for group in found(known)] == [len(group) for group in sorted(expected)]
    outside_found = {path for group in found(known) for path in group if place_of(path, tmp_path) != "one"}
    assert outside_found == {p for group in expected for p in group if place_of(p, tmp_path) != "one"}
    size = len("content 0")
    assert known.summary.waste == size * sum(len(group) - 1 for group in expected)


def run(place: Path, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
    process = FakeProcess(stdin=stdin, environ={"HOME": str(place / "home"), "RDC_CATALOG": "off"})
    code = main.run(("dupes", *words), process.environment)
    return code, process.out, process.err


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a` and `b` share a content; each has it twice. Another one is twice in `a` alone."""
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("shared")
    for name in ("a/3", "a/4"):
        (tmp_path / name).write_text("of a")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def grouped(events: str) -> list[list[str]]:
    """The paths of each group in the lines of --json."""
    groups = [event for event in map(json.loads, events.splitlines()) if event["event"] == "group"]
    return [[file["path"] for file in group["files"]] for group in groups]


def files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.glob("[ab]/*"))


def test_across_removes_nothing_beside_the_file_that_stays(trees: Path) -> None:
    assert run(trees, "--across", "--delete", "--apply", "a", "b")[0] == 0
    assert files(trees) == ["a/1", "a/2", "a/3", "a/4"]


def test_files_of_the_reference_stay_and_all_others_go(trees: Path) -> None:
    assert run(trees, "--reference=b", "--delete", "a")[0] == 0
    assert len(files(trees)) == 6
    assert run(trees, "--reference=b", "--delete", "--apply", "a")[0] == 0
    assert files(trees) == ["a/3", "a/4", "b/1", "b/2"]
    assert run(trees, "--reference=b", "--csv", "a")[1].count("\n") == 1


def test_a_reviewed_report_is_followed(trees: Path) -> None:
    """The group of `a` alone is deleted from the report, and one file of the other."""
    _, out, _ = run(trees, "--json", "a", "b")
    lines = []
    for line in out.splitlines():
        event = json.loads(line)
        if event["event"] == "group":
            if event["size"] == len("of a"):
                continue
            event["files"] = [file for file in event["files"] if file["path"] != "b/2"]
        lines.append(json.dumps(event))
    report = "\n".join(lines).encode()
    code, _, err = run(trees, "--from=-", "--delete", "--apply", "a", "b", stdin=report)
    assert (code, files(trees)) == (0, ["a/1", "a/3", "a/4", "b/2"]), err


def test_a_report_removes_nothing_that_differs_or_lies_elsewhere(trees: Path) -> None:
    _, out, _ = run(trees, "--json", "a", "b")
    (trees / "b/1").write_text("edited")
    code, _, err = run(trees, "--from=-", "--delete", "--apply", "b", stdin=out.encode())
    assert code in (ExitCode.PARTIAL, ExitCode.VANISHED)
    assert (trees / "b/1").read_text() == "edited"
    assert {"a/1", "a/2", "a/3", "a/4"} <= set(files(trees))
    assert "expected a file below the PATHs given" in err
    assert run(trees, "--from=-", "--delete", "b", stdin=b"no report")[0] == ExitCode.USAGE


def test_paths_come_from_a_list(trees: Path) -> None:
    (trees / "a/new\nline").write_text("of a")
    listed = b"\0".join(os.fsencode(path) for path in ("a/3", "a/new\nline", "")) + b"\0"
    assert grouped(run(trees, "--files-from=-", "--from0", "--json", stdin=listed)[1]) == [
        ["a/3", "a/new\nline"]
    ]
    (trees / "list").write_text("a/3\na/4\n")
    assert grouped(run(trees, "--files-from=list", "--json")[1]) == [["a/3", "a/4"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from=x", "a"), "--from is for --delete, --move or --symlink"),
        (("--from=x", "--reference=b", "--delete", "a"), "--from and --reference exclude each other"),
        (("--reference=nowhere", "a"), "--reference: there is no directory nowhere"),
        (("--from0", "a"), "--from0 needs --files-from"),
        (("--files-from=", "a"), "--files-from needs a file"),
        (("--files-from=-",), "rdc dupes needs a file or directory"),
        (("--from=", "--delete", "a"), "--from needs a report"),
    ],
)
def test_wrong_words_get_advice(words: tuple[str, ...], message: str, trees: Path) -> None:
    code, _, err = run(trees, *words)
    assert code == ExitCode.USAGE
    assert message in err
