"""Measures of the source: lines of files, length and complexity of functions, words in identifiers.

tests/project/test_sizes.py and tests/project/test_words.py compare them with their limits.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.support.project_paths import TOP

FILE_LINES = 1_000
FUNCTION_LINES = 60
COMPLEXITY = 15

GENERATED = {"rdc/kernel/cut/tables.h", "rdc/kernel/pages/html_names.h", "rdc/kernel/shingles/tables.h"}
"""Tables that a script writes may have any length."""

REASON = "long because"
"""A comment with these words in a function says why it is past a limit."""

OLD_WORDS = (
    "adopt",
    "blank blanks",
    "cell cells",
    "census censuses",
    "deceived",
    "doubtful",
    "expire",
    "extras",
    "form forms",
    "held",
    "kept",
    "kin",
    "lent",
    "mending",
    "news",
    "parted",
    "piece pieces",
    "place places",
    "press pressing pressure",
    "region regions",
    "restless",
    "settle settled settlement settlements settles settling",
    "sought",
    "standing",
    "strike",
    "suspects",
    "tally tallies",
    "target targets",
    "tell tells told",
    "theirs",
    "thrift",
    "tick",
    "tile tiles",
    "vanished",
)
"""Words that were replaced by standard terms, the first of a line as the name of all its forms."""

WORD_OF = {form: line.split()[0] for line in OLD_WORDS for form in line.split()}

WIRE_NAMES = frozenset(
    (
        *("Targets", "target", "targets", "link_targets", "blank", "cells", "doubtful", "kept", "VANISHED"),
        *("CellType", "binary_form", "link_in_place"),
    )
)
"""Identifiers that stay: messages and fields of the wire (Targets, blank, cells, doubtful, kept), targets of
symlinks in listings and on the wire, an exit code, names of Python's library, and "in place" as usual."""


@dataclass(frozen=True)
class Function:
    """A function of Python."""

    name: str
    """With the classes and functions around it, such as Runner.advance."""
    path: str
    lines: int
    """From `def` to the end, without the docstring."""
    complexity: int
    """Ways through it, by McCabe: 1, and 1 for each branch, loop, handler, condition and further operand of
    `and` and `or`. Functions within it count for themselves."""
    reason: bool
    """A comment says why it is long."""

    @property
    def past_limits(self) -> bool:
        return self.lines > FUNCTION_LINES or self.complexity > COMPLEXITY


def source_files(*tops: str, endings: tuple[str, ...] = (".py", ".pyi", ".c", ".h")) -> list[Path]:
    """Files of the checkout's folders `tops`, in order of path."""
    return sorted(path for top in tops for path in (TOP / top).rglob("*") if path.suffix in endings)


def shown(path: Path) -> str:
    """The path below the checkout."""
    return path.relative_to(TOP).as_posix()


def lines_of(path: Path) -> int:
    """Lines of a text file."""
    return path.read_bytes().count(b"\n")


def long_files() -> dict[str, int]:
    """Lines of the files in rdc/ and tests/ that have more than FILE_LINES, tables of scripts apart."""
    counted = {shown(path): lines_of(path) for path in source_files("rdc", "tests")}
    return {path: lines for path, lines in counted.items() if lines > FILE_LINES and path not in GENERATED}


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def own_nodes(function: FunctionNode) -> list[ast.AST]:
    """The nodes of a function without those of the functions and classes in it."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return found


BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.match_case,
    ast.Assert,
)


def complexity_of(function: FunctionNode) -> int:
    """See Function.complexity."""
    ways = 1
    for node in own_nodes(function):
        if isinstance(node, BRANCHES):
            ways += 1
        elif isinstance(node, ast.BoolOp):
            ways += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            ways += 1 + len(node.ifs)
    return ways


def length_of(function: FunctionNode) -> int:
    """See Function.lines."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def functions_of(path: Path) -> list[Function]:
    """The functions of one file of Python, methods and inner ones included."""
    text = path.read_text()
    rows = text.splitlines()
    found: list[Function] = []

    def visit(node: ast.AST, around: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, FunctionNode | ast.ClassDef):
                visit(child, around)
                continue
            named = (*around, child.name)
            if isinstance(child, FunctionNode):
                reason = any(
                    REASON in row.partition("#")[2] for row in rows[child.lineno - 2 : child.end_lineno]
                )
                found.append(
                    Function(".".join(named), shown(path), length_of(child), complexity_of(child), reason)
                )
            visit(child, named)

    visit(ast.parse(text), ())
    return found


def long_functions() -> list[Function]:
    """Functions of rdc/ past a limit and without a reason."""
    return [
        function
        for path in source_files("rdc", endings=(".py",))
        for function in functions_of(path)
        if function.past_limits and not function.reason
    ]


def words_of(identifier: str) -> list[str]:
    """The words of an identifier in lower case: `_FileGaps` and `file_gaps` have "file" and "gaps"."""
    return [
        word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier.replace("_", " "))
    ]


def identifiers_of(path: Path) -> list[str]:
    """Each identifier of a file of Python or C as often as it stands there, comments and strings excluded."""
    text = path.read_text()
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [token.string for token in tokens if token.type == tokenize.NAME]
    code = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|#\s*include[^\n]*', " ", text, flags=re.DOTALL)
    return re.findall(r"[A-Za-z_]\w*", code)


def old_words() -> Counter[str]:
    """How often each of OLD_WORDS stands in the identifiers of rdc/."""
    counts: Counter[str] = Counter()
    for path in source_files("rdc", endings=(".py", ".c")):
        for identifier, times in Counter(identifiers_of(path)).items():
            if identifier not in WIRE_NAMES:
                for word in words_of(identifier):
                    if word in WORD_OF:
                        counts[WORD_OF[word]] += times
    return counts
