"""The man pages, completions and the unit of data/ are what the code says, and each is installed."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath

from scripts.manual.data_files import DATA, data_files
from tests.support.project_paths import TOP


def present() -> set[str]:
    return {path.relative_to(DATA).as_posix() for path in DATA.rglob("*") if path.is_file()}


def test_the_generated_files_are_what_the_code_makes_now() -> None:
    stale = [name for name, text in data_files().items() if (DATA / name).read_text() != text]
    assert not stale, (
        "scripts/docs --refresh writes them; .venv/bin/python -m scripts.manual.data_files is faster"
    )


def test_there_are_no_others_but_the_unit() -> None:
    assert present() - data_files().keys() == {"lib/systemd/system/rdc-daemon.service"}


def test_each_is_installed_where_it_lies_below_data() -> None:
    table = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    installed = set()
    for directory, patterns in table.items():
        for path in (path for pattern in patterns for path in TOP.glob(pattern)):
            assert path.parent == DATA / PurePosixPath(directory)
            installed.add(path.relative_to(DATA).as_posix())
    assert installed == present()
