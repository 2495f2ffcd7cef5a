"""Names in docstrings exist: what stands in backticks or in CAPITALS is in the code, or is a file.

A docstring that names a constant, function or file that is gone sends its reader on a search without an end.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import errno
import functools
import io
import keyword
import random
import re
import signal
import socket
import stat
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.support.project_paths import TOP

PACKAGE = TOP / "rdc"
BACKTICKS = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*(?:\(\))?")
CAPITALS = re.compile(r"(?<![\w.$-])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
FILE = re.compile(r"(?<![\w/.-])[\w/-]+\.(?:py|pyi|c|h|md)\b(?!\()")
OTHERS = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | sys.stdlib_module_names
"""Names of Python itself."""
OF_SYSTEM = frozenset(name for module in (errno, signal, socket, stat) for name in dir(module)) | {
    "FIEMAP_FLAG_SYNC",
    "NAME_MAX",
    "PATH_MAX",
    "PIPE_BUF",
    "RENAME_EXCHANGE",
    "RENAME_NOREPLACE",
    "XATTR_NAME_MAX",
    "XATTR_SIZE_MAX",
    *dir(dataclasses),
    "kw_only",
    *dir(random.Random),
}
"""Names of the system and of Python's library that texts use and the code may not."""
EXAMPLES = {"README", "NAME_b64"}


@functools.cache
def names_in_code() -> frozenset[str]:
    """Return all words of rdc's code, texts that are no docstrings included, and of its command line."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*"):
        if path.suffix in {".c", ".h", ".toml", ".html", ".json"}:
            found.update(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)))
        elif path.suffix in {".py", ".pyi"}:
            text = path.read_text()
            found.update(_words_without_docstrings(text))
            found.update(path.relative_to(TOP).with_suffix("").parts)
    for path in [path for folder in ("bench", "scripts", "tests") for path in (TOP / folder).rglob("*.py")]:
        found.add(path.stem)
    return frozenset(found)


def _words_without_docstrings(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    documented = {node.value.lineno for node in docstrings(tree)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            continue
        if token.type != tokenize.STRING or token.start[0] not in documented:
            yield from re.findall(r"\w+", token.string)


def docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield all texts that stand for themselves: docstrings of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node


@functools.cache
def file_names() -> frozenset[str]:
    places = [TOP / "rdc", TOP / "tests", TOP / "bench", TOP / "scripts", TOP / "docs", TOP]
    return frozenset(path.name for place in places[:-1] for path in place.rglob("*.*")) | {
        path.name for path in TOP.iterdir()
    }


def dead_names(text: str) -> Iterator[str]:
    """Yield the names in a docstring that nothing in the code has."""
    known = names_in_code()
    for quoted in BACKTICKS.findall(text):
        if FILE.fullmatch(quoted):
            continue
        if DOTTED.fullmatch(quoted):
            parts = quoted.removesuffix("()").split(".")
            if quoted not in EXAMPLES and not all(p in known or p in OTHERS or p in OF_SYSTEM for p in parts):
                yield quoted
    for name in CAPITALS.findall(text):
        if name not in known and name not in OF_SYSTEM:
            yield name
    for name in FILE.findall(text):
        if not name.startswith("linux/") and Path(name).name not in file_names():
            yield name


def test_names_in_docstrings_exist() -> None:
    dead = [
        f"{path.relative_to(TOP)}:{node.lineno}: {name}"
        for path in sorted(PACKAGE.rglob("*.py*"))
        if path.suffix in {".py", ".pyi"}
        for node in docstrings(ast.parse(path.read_text()))
        for name in dead_names(ast.literal_eval(node.value))
    ]
    assert not dead, "\n".join(["names of nothing:", *dead])


def test_a_dead_name_is_found() -> None:
    text = "Of `names_in_no_code_at_all` and `len`, NO_SUCH_BOUND, `no_such_file.py` and EINVAL."
    assert list(dead_names(text)) == ["names_in_no_code_at_all", "NO_SUCH_BOUND", "no_such_file.py"]
