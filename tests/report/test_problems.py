"""Problems on stderr: ten lines of each kind, then a count, and nothing is left out of that."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, printable
from rdc.progress import Problem
from rdc.report import output as output_module
from rdc.report.output import LINES, TerminalOutput

TEXTS = ("cannot read it: found Permission denied (EACCES)", "cannot write it: found File too large (EFBIG)")


def problem(path: bytes, text: str, code: ExitCode = ExitCode.PARTIAL) -> Problem:
    return Problem(code, path, f"dst/{printable(path)}: {text}")


def told(events: list[Problem], *, quiet: bool = False) -> list[str]:
    lines: list[str] = []
    trouble = TerminalOutput(lines.append, lines.append, quiet=quiet)
    for event in events:
        trouble(event)
    trouble.close()
    return lines


def test_a_thousand_equal_problems_are_ten_lines_and_a_count() -> None:
    lines = told([problem(b"d/%d" % number, TEXTS[0]) for number in range(1000)])
    assert lines == [
        *(f"rdc: dst/d/{number}: {TEXTS[0]}\n" for number in range(10)),
        f"rdc: 990 more like this: {TEXTS[0]}\n",
    ]


def test_numbers_make_no_kind() -> None:
    lines = told(
        [problem(b"f", f"expected the 4,096 bytes that its size says, found {n}") for n in range(12)]
    )
    assert lines[-1] == "rdc: 2 more like this: expected the 4,096 bytes that its size says, found 11\n"
    assert len(lines) == 11


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.sampled_from(TEXTS), st.booleans())))
def test_each_is_told_or_counted(found: list[tuple[bytes, str, bool]]) -> None:
    events = [
        problem(path, text, ExitCode.OK if notice else ExitCode.PARTIAL) for path, text, notice in found
    ]
    lines = told(events * 4)
    kinds = Counter((text, notice) for _, text, notice in found * 4)
    counts = [line for line in lines if " more like this: " in line]
    assert len(lines) - len(counts) == sum(min(count, LINES) for count in kinds.values())
    assert sorted(counts) == sorted(
        f"rdc: {'note: ' if notice else ''}{count - LINES} more like this: {text}\n"
        for (text, notice), count in kinds.items()
        if count > LINES
    )
    # Only problems, of which none is hidden by notices.
    assert told(events * 4, quiet=True) == [line for line in lines if not line.startswith("rdc: note: ")]


def test_each_turn_of_a_watch_begins_to_count_again() -> None:
    lines: list[str] = []
    trouble = TerminalOutput(lines.append, lines.append)
    for _ in range(2):
        for number in range(12):
            trouble(problem(b"%d" % number, TEXTS[0]))
        trouble.settle()
    assert [" more like this" in line for line in lines] == [*[False] * 10, True] * 2


def test_kinds_are_bounded() -> None:
    """Beyond the bound, all problems get lines."""
    lines = told([problem(b"f", "x" * length) for length in range(output_module.KINDS + 50)] * 12)
    assert len(lines) == output_module.KINDS * 11 + 50 * 12
