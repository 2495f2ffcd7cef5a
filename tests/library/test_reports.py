"""Reports as plain values: every field, under the name that a program reads it by."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import rdc
from rdc.lean.records import field_names

REPORTS = [name for name in rdc.__all__ if name.endswith("Report")]


def test_every_report_has_plain_values() -> None:
    assert len(REPORTS) > 10
    for name in [*REPORTS, "NearDuplicates"]:
        assert callable(getattr(rdc, name).to_dict), name


def trees(top: Path) -> None:
    (top / "a").mkdir()
    for name in (b"one", b"caf\xe9"):
        with open(os.path.join(os.fsencode(top), b"a", name), "wb") as file:
            file.write(b"content" * 1000)


def test_the_values_are_those_of_the_fields(tmp_path: Path) -> None:
    trees(tmp_path)
    reports: list[Any] = [
        rdc.sync(tmp_path / "a", tmp_path / "b", catalog=None),
        rdc.check(str(tmp_path / "a") + "/", tmp_path / "b" / "a", catalog=None),
        rdc.dupes(tmp_path, catalog=None),
        rdc.scan(tmp_path, catalog=None),
        rdc.similar(tmp_path, catalog=None),
        rdc.undo(tmp_path / "b"),
    ]
    for report in reports:
        plain = report.to_dict()
        assert json.loads(report.to_json()) == plain
        assert json.loads(report.to_json(indent=2)) == plain
        assert report.to_json().isascii()
        names = field_names(type(report))
        assert [name for name in names if name not in plain] == [
            name for name in names if name == "paths_bytes"
        ]
        for name in names:
            value = getattr(report, name)
            if isinstance(value, (bool, int, float, str)):
                assert plain[name] == value


def test_paths_are_text_that_leads_back(tmp_path: Path) -> None:
    trees(tmp_path)
    plain = json.loads(rdc.dupes(tmp_path / "a", catalog=None).to_json())
    (group,) = plain["groups"]
    paths = [os.fsencode(file["path"]) for file in group["files"]]
    assert sorted(os.path.basename(path) for path in paths) == [b"caf\xe9", b"one"]
    assert all(os.path.exists(path) for path in paths)
    assert plain["exit"] == 0


def test_pages_are_those_of_the_commands(tmp_path: Path) -> None:
    for name in ("a/one", "b/one"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"content")
    page = rdc.dupes(tmp_path, catalog=None).to_html()
    assert "<title>rdc dupes</title>" in page
    assert f"<li>{tmp_path}/a</li><li>{tmp_path}/b</li>" in page
    page = rdc.scan(tmp_path, catalog=None).to_html(price=25)
    assert "<title>rdc scan</title>" in page
    assert f"{tmp_path}/a/one\n{tmp_path}/b/one" in page
    assert "EUR" in page
