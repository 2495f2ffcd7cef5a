"""C files include headers of their own topic and of lower ones; the build names all that they include."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.project_paths import KERNEL, TOP

FILES = TOP / "rdc" / "files"

KERNEL_TOPICS: tuple[tuple[str, ...], ...] = (
    ("cut", "hash", "shingles"),
    ("columns", "count", "lines", "recipe", "rows", "search", "sets", "similarity", "x86"),
)
"""Folders of rdc/kernel, lowest first. A file includes headers of its own folder and of lower ones."""

FILES_TOPICS: tuple[tuple[str, ...], ...] = (("base", "depth"), ("root",), ("bulk", "facts"))
"""The same for rdc/files."""

MODULE = KERNEL / "module.c"
"""It registers what all topics have."""

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
            if other in (own, package) or path == MODULE:
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


def extension_modules() -> list[dict[str, Any]]:
    """The C modules as pyproject.toml declares them."""
    tool: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]
    declared: list[dict[str, Any]] = tool["setuptools"]["ext-modules"]
    return declared


def all_included(sources: list[Path], package: Path) -> set[Path]:
    """The headers that the sources include, directly or through other headers."""
    found: set[Path] = set()
    waiting = list(sources)
    while waiting:
        new = set(included(waiting.pop(), package)) - found
        found |= new
        waiting += new
    return found


def test_every_c_file_is_built() -> None:
    """A source or header that pyproject.toml does not name is missing from source distributions."""
    named = {
        name
        for module in extension_modules()
        for key in ("sources", "depends")
        for name in module.get(key, ())
    }
    present = {path.relative_to(TOP).as_posix() for ending in "ch" for path in TOP.glob(f"rdc/**/*.{ending}")}
    assert named == present


@pytest.mark.parametrize("module", extension_modules(), ids=lambda module: module["name"])
def test_a_module_depends_on_the_headers_it_includes(module: dict[str, Any]) -> None:
    """A change of a header that `depends` lacks would not build the module anew."""
    (folder,) = module["include-dirs"]
    headers = all_included([TOP / name for name in module["sources"]], TOP / folder)
    assert sorted(module.get("depends", ())) == sorted(path.relative_to(TOP).as_posix() for path in headers)
