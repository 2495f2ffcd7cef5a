"""Scan reports: JSON that fits its schema, and tables for people and spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyarrow import parquet

from rdc.errors import ExitCode, RdcError
from rdc.library.scans import scan
from rdc.model.scan import (
    DirectorySummary,
    LevelSummary,
    Overlap,
    ScanOptions,
    ScanProblem,
    ScanReport,
    SimilarFiles,
    TypeSummary,
)
from rdc.survey.report.terminal import (
    TABLES,
    headline,
    in_components,
    level_title,
    percent,
    print_scan,
    scan_csv,
    scan_document,
    scan_json,
    write_parquet,
)
from scripts import make_scan_sample
from tests.support.project_paths import TOP

SCHEMA = json.loads((TOP / "rdc" / "survey" / "report" / "scan.schema.json").read_text())
SAMPLE = make_scan_sample.report()


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, changed to refuse fields that it does not name."""
    closed = {key: strict(value) if isinstance(value, dict) else value for key, value in schema.items()}
    return {**closed, "additionalProperties": False} if schema.get("type") == "object" else closed


def shown(report: ScanReport, width: int = 100) -> str:
    stream = io.StringIO()
    print_scan(report, stream, terminal=False, color=False, width=width)
    return stream.getvalue()


def test_json_keeps_its_schema(tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    (tmp_path / "b").write_bytes(b"x" * 10_000)
    real = scan([tmp_path, tmp_path / "none"], catalog=None)
    bare = scan([tmp_path], ScanOptions(compress=False, sample=0.5), catalog=None)
    for report in (SAMPLE, real, bare):
        document = json.loads(scan_json(report))
        jsonschema.validate(document, strict(SCHEMA))
        assert set(document) - {"growth"} == set(SCHEMA["required"])
    broken = {**scan_document(SAMPLE), "files": -1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_json_is_plain_ascii_and_exact() -> None:
    text = scan_json(SAMPLE)
    assert text.isascii()
    assert text.count("\n") == 1
    document = json.loads(text)
    assert document["levels"][0]["ratio"] == pytest.approx(SAMPLE.levels[0].ratio)
    alike = replace(SAMPLE, similar=(SimilarFiles((b"a", b"b"), 5, 2 / 3),))
    assert json.loads(scan_json(alike))["similar"] == [
        {"paths": [{"path": "a"}, {"path": "b"}], "bytes": 5, "resemblance": 0.6667}
    ]
    hostile = replace(SAMPLE, overlaps=(Overlap(b"a\x1b[2J\xff", b"\x7f", 1, 2, 3),))
    one = json.loads(scan_json(hostile))["overlaps"][0]
    assert one["first_b64"] == "YRtbMkr/"
    assert "second_b64" not in one
    assert "\x7f" not in scan_json(hostile)


def test_the_fixture_is_the_generators() -> None:
    assert (TOP / "fixtures" / "scan" / "sample.json").read_text() == scan_json(SAMPLE)


def test_headline() -> None:
    level = SAMPLE.level("cdc-16384")
    assert level is not None
    assert headline(SAMPLE) == "16 KiB chunks save 36 %, zstd after them 51 %"
    sampled = replace(SAMPLE, levels=(replace(level, exact=False, compressed_bytes=None),))
    assert headline(sampled) == "16 KiB chunks save about 36 %"
    partly = replace(SAMPLE, coverage=replace(SAMPLE.coverage, complete=False, reason="time"))
    assert headline(partly).endswith(", of what was read")
    assert headline(replace(SAMPLE, levels=())) == "nothing to save: no content was read"
    assert [percent(x) for x in (0, 0.0004, 0.0949, 0.0996, 0.31, 0.996, 1)] == [
        "0 %",
        "0.0 %",
        "9.5 %",
        "10 %",
        "31 %",
        "99.9 %",
        "100 %",
    ]
    assert level_title("fixed-131072") == "128 KiB blocks"


def test_the_terminal_shows_what_matters() -> None:
    text = shown(SAMPLE)
    assert text.splitlines()[0] == headline(SAMPLE)
    for part in (
        "identical files: 3,911 groups",
        "16 KiB chunks",
        "4 KiB blocks",
        "data/machines/debian-old",
        ".qcow2",
        "thesis-final2.tex",
        "2 problems",
        "~",
        "±0.4 %",
    ):
        assert part in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("width", [200, 110, 80, 72, 60, 50, 40])
def test_no_figure_is_missing_where_the_terminal_is_narrow(width: int) -> None:
    text = shown(SAMPLE, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for part in ("whole files", "18.2 GB", "14.2 GB, 33 % ±1", "data/machines/debian", "952.0 MB"):
        assert part in text
    figures = re.findall(r"[\d,]*\d(?:\.\d+)?", shown(SAMPLE, 500))
    assert Counter(figures) == Counter(re.findall(r"[\d,]*\d(?:\.\d+)?", text))
    for head in ("chunks", "unique", "kept", "saves", "ratio", "with zstd", "files", "bytes", "duplicate"):
        assert head in text


def test_a_terminal_gets_a_screen_of_24_lines() -> None:
    stream = io.StringIO()
    print_scan(SAMPLE, stream, terminal=True, color=False, width=80)
    lines = stream.getvalue().splitlines()
    assert len(lines) <= 24, lines
    assert lines[-1] == "with --html=FILE or in a pipe also: types, like directories, similar files"
    beside = io.StringIO()
    print_scan(SAMPLE, beside, terminal=True, color=False, width=80, page=True)
    assert beside.getvalue().splitlines() == lines[:-1]


def test_paths_break_after_slashes() -> None:
    assert in_components("a/bc/def", 8) == "a/bc/def"
    assert in_components("alpha/beta/gamma", 11) == "alpha/beta/\ngamma"
    assert in_components("a/long-component/b", 6) == "a/\nlong-component/\nb"


def test_a_row_is_a_line_where_no_terminal_is() -> None:
    path = b"a/very/long/path/" * 20 + b"end"
    wide = replace(SAMPLE, overlaps=(Overlap(path, path + b"2", 10_000, 10_000, 10_000),))
    stream = io.StringIO()
    print_scan(wide, stream, terminal=False, color=False)
    lines = stream.getvalue().splitlines()
    (line,) = [line for line in lines if line.strip().startswith(path.decode() + " ")]
    assert line.split()[1:] == ["10.0", "KB", "100", "%"]
    assert max(map(len, lines)) < len(path) + 40


def test_names_cannot_forge_lines() -> None:
    hostile = replace(
        SAMPLE,
        overlaps=(Overlap(b"a\nread 0 files\x1b[2J", b"[bold]b[/bold]:smile:\xff", 10_000, 10_000, 10_000),),
    )
    text = shown(hostile, width=160)
    assert "\x1b" not in text
    assert "a\\x0aread 0 files\\x1b[2J" in text
    assert "[bold]b[/bold]:smile:\\xff" in text


def test_colours_are_for_terminals() -> None:
    for terminal, color, escapes in ((True, True, True), (True, False, False), (False, True, False)):
        stream = io.StringIO()
        print_scan(SAMPLE, stream, terminal=terminal, color=color, width=100)
        assert ("\x1b" in stream.getvalue()) == escapes
        assert "\x1b[3" not in stream.getvalue()


def test_nothing_to_show(tmp_path: Path) -> None:
    text = shown(scan([tmp_path], catalog=None))
    assert text.splitlines()[:2] == [headline(scan([tmp_path], catalog=None)), "0 files, 0 B, 0 B allocated"]
    assert "granularity" not in text


@pytest.mark.parametrize("table", TABLES)
def test_csv_has_the_same_figures(table: str) -> None:
    rows = list(csv.DictReader(io.StringIO(scan_csv(SAMPLE, table))))
    assert len(rows) == len(getattr(SAMPLE, table))
    if table == "levels":
        assert [int(row["unique_bytes"]) for row in rows] == [one.unique_bytes for one in SAMPLE.levels]
        assert rows[1]["exact"] == "False"
    elif table == "errors":
        assert rows[1]["path"] == "data/backups/caf\\xe9.tar"
    else:
        first = getattr(SAMPLE, table)[0]
        assert int(list(rows[0].values())[-1]) == list(vars_of(first))[-1]


def vars_of(one: Any) -> list[Any]:
    return [getattr(one, name) for name in one.__slots__]


def test_a_spreadsheet_does_not_run_names() -> None:
    hostile = replace(SAMPLE, overlaps=(Overlap(b"=cmd|x", b"@b", 1, 2, 3),))
    (row,) = csv.DictReader(io.StringIO(scan_csv(hostile, "overlaps")))
    assert (row["first"], row["second"]) == ("'=cmd|x", "'@b")


def test_no_cell_of_a_table_moves_the_cursor() -> None:
    name = b"\x1b[2J\xff\n"
    hostile = replace(
        SAMPLE,
        directories=(DirectorySummary(name, 1, 2, 3, 4, 5),),
        types=(TypeSummary(".\x1b[2J\ufffd", 1, 2, 3),),
        overlaps=(Overlap(name, name, 1, 2, 3),),
        errors=(ScanProblem(name, "no", ExitCode.PARTIAL),),
    )
    shown = "\\x1b[2J\\xff\\x0a"
    for table, cells in {
        "directories": [shown, "1", "2", "3", "4", "5"],
        "types": [".\\x1b[2J\ufffd", "1", "2", "3"],
        "overlaps": [shown, shown, "1", "2", "3"],
        "errors": [shown, "no", "23"],
    }.items():
        assert list(csv.reader(io.StringIO(scan_csv(hostile, table))))[1:] == [cells]


def test_parquet(tmp_path: Path) -> None:
    empty = replace(SAMPLE, similar=(), overlaps=())
    for report in (SAMPLE, empty):
        write_parquet(report, str(tmp_path / "out"))
        levels = parquet.read_table(tmp_path / "out" / "levels.parquet").to_pylist()
        assert [one["name"] for one in levels] == [level.name for level in SAMPLE.levels]
        assert levels[2]["unique_bytes"] == SAMPLE.levels[2].unique_bytes
        overlaps = parquet.read_table(tmp_path / "out" / "overlaps.parquet")
        assert overlaps.num_rows == len(report.overlaps)
        assert overlaps.column_names[:2] == ["first", "second"]
    (tmp_path / "file").touch()
    with pytest.raises(RdcError, match="cannot write the report"):
        write_parquet(SAMPLE, str(tmp_path / "file" / "x"))


def test_a_level_of_nothing() -> None:
    level = LevelSummary("file", 0.0, 0, 0, 0, 0, True, 0, 0)
    assert level.ratio == 1
    assert "nothing to save" in headline(replace(SAMPLE, bytes=0, levels=(level,)))


def test_a_chain_of_directories_takes_one_line() -> None:
    chain = tuple(
        DirectorySummary(path, 9, 1000 - number, 900 - number, 0, 0)
        for number, path in enumerate((b"/", b"/home", b"/home/me", b"/home/me/x"))
    )
    other = DirectorySummary(b"/home/me/x/y", 1, 500, 400, 500, 400)
    text = shown(replace(SAMPLE, directories=(*chain, other)))
    assert [line.split()[0] for line in text.splitlines() if line.startswith(" /")] == [
        "/home/me/x",
        "/home/me/x/y",
    ]
