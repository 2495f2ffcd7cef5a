"""Files and functions stay short enough to read in one go."""

from __future__ import annotations

import statistics

from tests.project.source_measures import (
    COMPLEXITY,
    FILE_LINES,
    FUNCTION_LINES,
    REASON,
    functions_of,
    lines_of,
    long_files,
    long_functions,
    source_files,
)
from tests.support.project_paths import TOP

LONG_FILES: dict[str, str] = {
    "rdc/files/replace/commit_group.py": "one argument, step by step: why no path is ever half new",
    "rdc/kernel/recipe/reference.py": "the definition of recipe rows, compared with the C form as a whole",
    "rdc/protocol/rules/pending_requests.py": "one table: the answers each request allows",
    "tests/kernel/native/recorded_writes.c": "one preloaded library: all calls share a log and its lock",
    "tests/support/running/compared_sync.py": "one scene: each check uses the trees of the step before",
}
"""Files that stay longer than FILE_LINES, each with its reason."""

MOST_LONG_FILES = 5
MEDIAN_LINES = 120


def test_the_median_file_is_short() -> None:
    median = statistics.median(lines_of(path) for path in source_files("rdc", "tests"))
    assert median <= MEDIAN_LINES


def test_long_files_are_listed_with_a_reason() -> None:
    assert long_files().keys() <= LONG_FILES.keys(), f"past {FILE_LINES} lines a file needs a reason"
    assert len(LONG_FILES) <= MOST_LONG_FILES
    assert all(LONG_FILES.values())


def test_long_functions_say_why() -> None:
    assert not long_functions(), (
        f"more than {FUNCTION_LINES} lines, or a complexity past {COMPLEXITY}: split into named steps, or add"
        f" a comment '# {REASON} ...'"
    )


def test_complexity_and_length_are_counted_as_defined() -> None:
    (outer, inner, _) = functions_of(TOP / "tests" / "project" / "measured_sample.py")
    assert (outer.name, outer.lines, outer.complexity) == ("measured", 12, 7)
    assert (inner.name, inner.complexity, inner.reason) == ("measured.inner", 2, True)
