"""Files and functions stay short enough to read in one go.

tests/project/allowances.json lists what was longer when the limits were set. It only shrinks: see
tests/project/source_measures.py.
"""

from __future__ import annotations

import statistics
from collections import Counter

from tests.project.source_measures import (
    COMPLEXITY,
    FILE_LINES,
    FUNCTION_LINES,
    REASON,
    allowances,
    functions_of,
    lines_of,
    long_files,
    long_functions,
    source_files,
)
from tests.support.project_paths import TOP

LONG_FILES: dict[str, str] = {
    "rdc/files/replace/commit_group.py": "one argument, step by step: why no path is ever half new",
    "rdc/kernel/recipe/reference.py": "the definition of recipe rows, which the C form is compared with whole",
    "rdc/protocol/rules/pending_requests.py": "one table: which answer each request allows, and how much of it",
    "rdc/records.py": "one mechanism: record classes, their methods, and copies and pickles of them",
    "tests/kernel/native/recorded_writes.c": "one preloaded library: all calls share a log, its lock and its order",
    "tests/support/running/compared_sync.py": "one scene: each check uses the trees of the step before",
}
"""Files that stay longer than FILE_LINES, each with its reason."""

MOST_LONG_FILES = 8
MEDIAN_LINES = 120


def test_the_median_file_is_short() -> None:
    median = statistics.median(lines_of(path) for path in source_files("rdc", "tests"))
    assert median <= MEDIAN_LINES


def test_long_files_are_listed_with_a_reason() -> None:
    listed = {*LONG_FILES, *allowances()["long_files"]}
    unlisted = {path: lines for path, lines in long_files().items() if path not in listed}
    assert not unlisted, f"more than {FILE_LINES} lines: split them by topic"
    assert len(LONG_FILES) <= MOST_LONG_FILES
    assert all(LONG_FILES.values())


def test_exceptions_for_long_files_are_needed() -> None:
    assert LONG_FILES.keys() <= long_files().keys()
    assert not allowances()["long_files"].keys() & LONG_FILES.keys()


def test_long_functions_say_why() -> None:
    allowed = Counter(allowances()["long_functions"])
    found = long_functions()
    more = Counter(function.name for function in found) - allowed
    assert not more, (
        f"more than {FUNCTION_LINES} lines, or a complexity past {COMPLEXITY}: split into named steps, or add"
        f" a comment '# {REASON} ...': {[function for function in found if function.name in more]}"
    )


def test_complexity_and_length_are_counted_as_defined() -> None:
    (outer, inner, _) = functions_of(TOP / "tests" / "project" / "measured_sample.py")
    assert (outer.name, outer.lines, outer.complexity) == ("measured", 12, 7)
    assert (inner.name, inner.complexity, inner.reason) == ("measured.inner", 2, True)
