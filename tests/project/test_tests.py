"""Tests are found where their module is, and share helpers, never each other."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Any

from tests.support.project_paths import PACKAGE, TOP

TESTS = TOP / "tests"
OWN_FOLDERS = {"docs", "end_to_end", "project", "reference", "support"}
"""Folders of tests that are about no package of rdc."""


@functools.cache
def sources() -> dict[Path, str]:
    """Return the text of all Python files outside rdc that may import tests or their helpers."""
    return {
        path: path.read_text()
        for folder in (TESTS, TOP / "bench", TOP / "scripts")
        for path in sorted(folder.rglob("*.py"))
    }


@functools.cache
def imports(path: Path) -> set[str]:
    """Return the modules that a file may import: of `from a import b` both a and a.b."""
    found = set[str]()
    for node in ast.walk(ast.parse(sources()[path])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_no_test_module_is_imported() -> None:
    """What two modules share goes to tests/support, or to a module beside them."""
    wrong = [
        f"{path.relative_to(TOP)} imports {name}"
        for path in sources()
        for name in sorted(imports(path))
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]
    assert not wrong


def test_a_helper_of_one_module_stands_beside_it() -> None:
    """tests/support is for what several use. A program is named where it is started, not imported."""
    wrong = []
    for path in sorted((TESTS / "support").rglob("*.py")):
        module = ".".join(path.relative_to(TOP).with_suffix("").parts)
        users = [
            user
            for user in sources()
            if user != path and (module in imports(user) or module in sources()[user])
        ]
        if len(users) == 1 and users[0].name.startswith("test_"):
            wrong.append(f"{path.relative_to(TOP)} serves {users[0].relative_to(TOP)} alone")
    assert not wrong


def test_folders_of_tests_are_those_of_the_packages() -> None:
    wrong = [
        str(folder.relative_to(TOP))
        for folder in sorted(TESTS.rglob("*"))
        if folder.is_dir()
        and any(folder.glob("test_*.py"))
        and folder.relative_to(TESTS).parts[0] not in OWN_FOLDERS
        and not (PACKAGE / folder.relative_to(TESTS)).is_dir()
    ]
    assert not wrong, "name them as the folder of rdc that they test"


def test_every_folder_says_what_it_holds() -> None:
    for folder in {path.parent for path in TESTS.rglob("test_*.py")}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_the_readme_names_what_is_there_and_its_test_passes(tmp_path: Path) -> None:
    text = (TESTS / "README.md").read_text()
    for name in re.findall(r"`((?:support|end_to_end|reference|project|docs|plan|files)/[\w./]*)`", text):
        assert (TESTS / name).exists(), name
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own page
    names["test_a_newer_file_is_skipped"](names["Way"].HERE, tmp_path)
