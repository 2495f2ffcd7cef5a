"""C files include headers of their own topic and of lower ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.project_paths import KERNEL, TOP

FILES = TOP / "rdc" / "files"

KERNEL_TOPICS: tuple[tuple[str, ...], ...] = (
    ("cut", "hash", "shingles"),
    (
        "columns",
        "count",
        "lines",
        "patterns",
        "recipe",
        "rows",
        "samples",
        "search",
        "sets",
        "similarity",
        "x86",
    ),
)
"""Folders of rdc/kernel, lowest first. A file includes headers of its own folder and of lower ones."""

FILES_TOPICS: tuple[tuple[str, ...], ...] = (("base", "depth"), ("root",), ("bulk", "facts"))
"""The same for rdc/files."""

MODULES = (KERNEL / "module.c", FILES / "module.c")
"""They register what all topics have."""

SHARED_HEADERS_USE = {"cut"}
"""Topics whose headers the kernel's shared headers, those in rdc/kernel itself, may include."""


def c_files(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*") if path.suffix in (".c", ".h"))


def included(path: Path, package: Path) -> list[Path]:
    """The headers of the project that a file includes directly. Names are relative to its folder or to the
    package, the only folder of headers that the build names."""
    names = re.findall(r'^\s*#\s*include "([^"]+)"', path.read_text(), re.MULTILINE)
    found = []
    for name in names:
        headers = [folder / name for folder in (path.parent, package) if (folder / name).is_file()]
        assert headers, f"{path} includes {name}, which is not there"
        found.append(headers[0].resolve())
    return found


def rank_of(topic: str, topics: tuple[tuple[str, ...], ...]) -> int:
    for rank, names in enumerate(topics):
        if topic in names:
            return rank
    raise AssertionError(f"{topic}: give this topic a rank")


@pytest.mark.parametrize(("package", "topics"), [(KERNEL, KERNEL_TOPICS), (FILES, FILES_TOPICS)])
def test_includes_point_down(package: Path, topics: tuple[tuple[str, ...], ...]) -> None:
    for path in c_files(package):
        for header in included(path, package):
            own, other = path.parent, header.parent
            if other in (own, package, package.parent) or path in MODULES:
                continue
            if own == package:
                assert other.name in SHARED_HEADERS_USE, f"{path} includes {header}"
            else:
                assert rank_of(other.name, topics) < rank_of(own.name, topics), f"{path} includes {header}"


@pytest.mark.parametrize("package", [KERNEL, FILES])
def test_no_include_circles(package: Path) -> None:
    graph = {path: set(included(path, package)) for path in c_files(package)}
    while graph:
        ends = {path for path, headers in graph.items() if not headers & graph.keys()}
        assert ends, f"includes in a circle: {sorted(map(str, graph))}"
        graph = {path: headers for path, headers in graph.items() if path not in ends}
