"""Groups of identical and of similar files, and the output of an index: lines, tables, events, totals."""

from __future__ import annotations

import base64
import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.duplicates import report as duplicates_report
from rdc.errors import ExitCode, FileError, worse
from rdc.model.duplicates import DuplicateFile, DuplicateGroup, DuplicateReport, DuplicateSummary
from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarReport, SimilarSummary
from rdc.progress import Problem, Progressed
from rdc.report.json_output import JsonOutput
from rdc.report.output import csv_name, null_names
from rdc.survey import similar_report
from rdc.survey.index_command import IndexTerminal
from tests.support.running.fake_environment import FakeClock

HOSTILE = b"\x1b[2J\xff\n"
SHOWN = "\\x1b[2J\\xff\\x0a"
ENCODED = base64.b64encode(HOSTILE).decode()
PATH = {"path": "\x1b[2J�\n", "path_b64": ENCODED}

SIMILAR = SimilarGroup(
    (
        SimilarFile(b"a", 4_000, 0.98765432, 0.99996, b"b", (HOSTILE, b"c")),
        SimilarFile(b"b", 5_000, 0.9996, 0.5, b"a", ()),
    )
)
FOLDERS = SimilarFolders(HOSTILE, b"new", 3_000, 4_000, 9_000)


def events_of(lines: list[str]) -> list[dict[str, Any]]:
    for line in lines:
        assert line.endswith("\n")
        assert line[:-1].isascii()
        assert line[:-1].isprintable()
    events = [json.loads(line) for line in lines]
    assert [event.pop("v") for event in events] == [1] * len(events)
    return events


def test_similar_files_for_people() -> None:
    assert similar_report.files_text(SIMILAR.files) == (
        f" 98.8     4.0 KB  a\n{'':16}= {SHOWN}\n{'':16}= c\n 99.9     5.0 KB  b\n"
    )
    assert similar_report.files_text([]) == ""


@pytest.mark.parametrize(
    ("part", "text"), [(1.0, "100.0"), (0.9999, " 99.9"), (0.5, " 50.0"), (0.001, "  0.1")]
)
def test_nothing_but_equality_is_all_alike(part: float, text: str) -> None:
    line = similar_report.files_text([SimilarFile(b"a", 4, part, part, b"b", ())])
    assert line == f"{text}        4 B  a\n"


def test_folders_for_people() -> None:
    assert similar_report.folders_text(FOLDERS) == (
        f" 75.0     3.0 KB\n           4.0 KB  {SHOWN}\n           9.0 KB  new\n"
    )


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ((0, 0, 0, 0, 0, 0), "no similar files, out of 0{}"),
        ((1_234, 1, 2, 1, 0, 0), "1 group of 2 similar files, out of 1,234{}; 1 pair compared"),
        ((9, 0, 0, 3, 3, 0), "no similar files, out of 9{}; 3 pairs compared, 3 below the threshold"),
        (
            (9, 2, 1, 3, 1, 1_000),
            "2 groups of 1 similar file, out of 9{}; 3 pairs compared, 1 below the threshold"
            "; 1,000 less likely pairs not compared",
        ),
    ],
)
def test_what_a_search_for_similar_files_came_to(figures: tuple[int, ...], text: str) -> None:
    files, groups, grouped, candidates, false_candidates, left_out = figures
    summary = SimilarSummary(77, files, groups, grouped, 4, candidates, false_candidates, left_out)
    assert similar_report.similar_summary(SimilarReport((), (), (), summary, ExitCode.OK)) == text.format(
        " with different content"
    )


def test_events_of_similar_files() -> None:
    lines: list[str] = []
    clock = FakeClock()
    events = JsonOutput(lines.append, lambda: None, clock)
    events.start()
    events(Problem(ExitCode.VANISHED, HOSTILE, "gone"))
    events(Progressed("compare", 5, None))
    events(SIMILAR)
    events(SIMILAR.files[1])
    events(FOLDERS)
    clock.now += 0.25
    summary = SimilarSummary(1, 2, 3, 4, 5, 6, 7, 8)
    events.finish(SimilarReport((), (), (), summary, ExitCode.VANISHED))
    second = {"path": "b", "size": 5_000, "similarity": 0.9996, "contained": 0.5, "like": {"path": "a"}}
    assert events_of(lines) == [
        {"event": "start"},
        {"event": "error", "code": 24, **PATH, "message": "gone"},
        {"event": "progress", "phase": "compare", "done": 5},
        {
            "event": "group",
            "bytes": 9_000,
            "files": [
                {
                    "path": "a",
                    "size": 4_000,
                    "similarity": 0.9877,
                    "contained": 1.0,
                    "like": {"path": "b"},
                    "copies": [PATH, {"path": "c"}],
                },
                second,
            ],
        },
        {"event": "match", **second},
        {
            "event": "folders",
            "overlap": 0.75,
            "shared": 3_000,
            "first": {**PATH, "bytes": 4_000},
            "second": {"path": "new", "bytes": 9_000},
        },
        {
            "event": "summary",
            "searched": 1,
            "files": 2,
            "groups": 3,
            "grouped": 4,
            "min_matches": 5,
            "candidates": 6,
            "false_candidates": 7,
            "left_out": 8,
            "seconds": 0.25,
            "exit": 24,
        },
    ]


def test_the_overlap_of_three_figures_is_rounded_to_four_places() -> None:
    lines: list[str] = []
    events = JsonOutput(lines.append, lambda: None, FakeClock())
    events(SimilarFolders(b"a", b"b", 1, 3, 9))
    match = SimilarFile(b"a", 1, 1 / 3, 2 / 3, b"b", ())
    events.finish(SimilarReport((), (match,), (), None, ExitCode.OK))
    folders, found, summary = events_of(lines)
    assert folders["overlap"] == found["similarity"] == 0.3333
    assert found["contained"] == 0.6667
    assert summary == {"event": "summary", "matches": 1, "seconds": 0.0, "exit": 0}


def test_tables_have_a_row_for_each_name() -> None:
    def cells(text: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(text)))

    rows = cells(similar_report.FILES_HEAD + "".join(similar_report.file_rows(7, SIMILAR)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[1:] == [
        ["7", "0.9877", "1.0000", "4000", "a", "", "b", ""],
        ["7", "0.9877", "1.0000", "4000", SHOWN, ENCODED, "b", ""],
        ["7", "0.9877", "1.0000", "4000", "c", "", "b", ""],
        ["7", "0.9996", "0.5000", "5000", "b", "", "a", ""],
    ]
    rows = cells(similar_report.FOLDERS_HEAD + similar_report.folder_rows(FOLDERS))
    assert rows[1:] == [["0.7500", "3000", "4000", "9000", SHOWN, ENCODED, "new", ""]]
    group = DuplicateGroup(5, (DuplicateFile(b"a", (b'q"q', HOSTILE)), DuplicateFile(b"b")))
    rows = cells(duplicates_report.DUPLICATES_HEAD + "".join(duplicates_report.duplicate_rows(3, group)))
    assert rows[1:] == [
        ["3", "1", "5", "a", ""],
        ["3", "1", "5", 'q"q', ""],
        ["3", "1", "5", SHOWN, ENCODED],
        ["3", "2", "5", "b", ""],
    ]


@given(st.binary(min_size=1, max_size=30) | st.binary(max_size=9).map(b"=".__add__))
def test_a_cell_gives_the_name_back(name: bytes) -> None:
    name = name.replace(b"\0", b"")
    ((text, encoded),) = csv.reader(io.StringIO(csv_name(name)))
    assert text.isprintable()
    assert text[:1] not in {"=", "+", "-", "@"}
    assert (base64.b64decode(encoded) if encoded else text.encode()) == name


@pytest.mark.parametrize("name", [b"=1+1", b"+a", b"-b", b"@c", b"=\xff"])
def test_a_name_that_a_spreadsheet_would_run_is_text(name: bytes) -> None:
    ((text, encoded),) = csv.reader(io.StringIO(csv_name(name)))
    assert text.startswith("'")
    assert base64.b64decode(encoded) == name


@given(st.lists(st.binary(min_size=1).filter(lambda name: b"\0" not in name), min_size=1))
def test_names_ended_by_nul_come_back_and_end_their_group(names: list[bytes]) -> None:
    assert (null_names(names) * 2).split(b"\0\0") == [b"\0".join(names), b"\0".join(names), b""]


def test_events_of_identical_files() -> None:
    lines: list[str] = []
    events = JsonOutput(lines.append, lambda: None, FakeClock())
    files = (DuplicateFile(b"a", (HOSTILE,)), DuplicateFile(b"b"), DuplicateFile(b"c"))
    found = DuplicateSummary(1, 2, 3, 4, 5, 6)
    events.finish(DuplicateReport((DuplicateGroup(1_000, files),), found, ExitCode.OK))
    assert events_of(lines) == [
        {
            "event": "group",
            "size": 1_000,
            "waste": 2_000,
            "files": [{"path": "a", "links": [PATH]}, {"path": "b"}, {"path": "c"}],
        },
        {
            "event": "summary",
            "searched": 1,
            "groups": 2,
            "files": 3,
            "waste": 4,
            "files_read": 5,
            "bytes_read": 6,
            "seconds": 0.0,
            "exit": 0,
        },
    ]
    assert duplicates_report.duplicates_text(DuplicateGroup(1, files)) == f"a\n  = {SHOWN}\nb\nc\n"
    summary = DuplicateSummary(1, 1_234, 2, 5_000, 5, 6)
    assert (
        duplicates_report.duplicates_summary(DuplicateReport((), summary, ExitCode.OK))
        == "1,234 groups, 2 files, 5.0 KB could be saved"
    )


class Bar:
    def __init__(self) -> None:
        self.followed: list[object] = []
        self.closed = False

    def follow(self, event: object) -> None:
        self.followed.append(event)

    def line(self, text: str) -> bool:
        return False

    def hide(self) -> None: ...

    def wait(self, word: str) -> None: ...

    def close(self) -> None:
        self.closed = True


def test_an_index_counts_what_it_read_and_what_it_knew() -> None:
    said: list[str] = []
    bar = Bar()
    terminal = IndexTerminal(said.append, bar)

    def code() -> ExitCode:
        return terminal.code

    assert terminal.counts(0) == "0 files: 0 known, 0 read (0 B)"
    terminal.signed(1, 3_000, known=False)
    terminal.signed(7, 5_000, known=True)
    terminal.signed(2, 400, known=False)
    assert terminal.counts(0) == "10 files: 7 known, 3 read (3.4 KB)"
    # Progress covers all files, known ones included.
    assert bar.followed == [Progressed("compare", done, None) for done in (3_000, 8_000, 8_400)]
    assert code() is ExitCode.OK
    terminal.report(Problem(ExitCode.OK, b"x", "nothing to worry about"))
    assert said == []
    terminal.report(Problem(ExitCode.VANISHED, HOSTILE, "away\n"))
    assert code() is ExitCode.VANISHED
    terminal.failed(FileError(b"y", "y: no"))
    terminal.failed(FileError(b"z", "z: gone", code=ExitCode.VANISHED))
    assert code() is FileError(b"y", "").code is ExitCode.PARTIAL
    assert said == ["rdc: away\\x0a\n", "rdc: y: no\n", "rdc: z: gone\n"]
    assert terminal.counts(1_000) == "10 files: 7 known, 3 read (3.4 KB), 3 failed, 1,000 not kept"
    terminal.close()
    assert bar.closed


@pytest.mark.parametrize(
    ("before", "now", "both"),
    [
        (ExitCode.OK, ExitCode.VANISHED, ExitCode.VANISHED),
        (ExitCode.VANISHED, ExitCode.OK, ExitCode.VANISHED),
        (ExitCode.VANISHED, ExitCode.PARTIAL, ExitCode.PARTIAL),
        (ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.PARTIAL),
        (ExitCode.PARTIAL, ExitCode.OK, ExitCode.PARTIAL),
    ],
)
def test_what_could_not_be_read_outweighs_what_went_away(
    before: ExitCode, now: ExitCode, both: ExitCode
) -> None:
    assert worse(before, now) is both
