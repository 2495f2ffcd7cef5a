"""Totals of a deduplication: limits, what is counted of each action, and the exit code."""

from __future__ import annotations

import pytest

from rdc.duplicates.run_totals import DedupeEvent, RunTotals
from rdc.errors import ExitCode, FileError
from rdc.model.duplicates import Action, DedupeOptions, Instance
from rdc.progress import Problem, Progressed


class Reported(list[DedupeEvent]):
    def __call__(self, event: DedupeEvent, /) -> None:
        self.append(event)


def totals(max_files: int | None = None, max_bytes: int | None = None) -> tuple[RunTotals, Reported]:
    reported = Reported()
    return RunTotals(DedupeOptions(max_files=max_files, max_bytes=max_bytes), reported), reported


def test_the_limit_of_files_ends_the_run_and_gives_it_a_code() -> None:
    run, _ = totals(max_files=2)
    assert run.take(10) and run.take(10)
    assert run.take(5, another=False), "a further part of the last file is no other file"
    assert not run.take(1)
    assert run.capped
    report = run.report()
    assert (report.capped, report.exit) == (True, ExitCode.MAX_DELETE)


def test_the_limit_of_bytes_counts_what_was_taken_and_not_given_back() -> None:
    run, _ = totals(max_bytes=100)
    assert run.take(60)
    run.untake(60, another=True)
    assert run.take(100)
    assert not run.take(1)
    assert run.report().exit is ExitCode.MAX_DELETE


def test_without_limits_everything_may_be_taken() -> None:
    run, _ = totals()
    assert all(run.take(1 << 62) for _ in range(5))
    assert not run.report().capped


def test_actions_add_up_and_are_reported() -> None:
    run, reported = totals()
    first = Instance(Action.LINK, b"a", b"b", 10, 4, 3, compressed=1, held=2)
    second = Instance(Action.CLEAR, b"c", b"b", 5, 1, 0)
    run.done(first)
    run.done(second, files=0)
    run.groups, run.already = 7, 9
    report = run.report()
    assert reported == [first, second]
    assert (report.groups, report.files, report.bytes, report.won, report.perhaps) == (7, 1, 15, 5, 3)
    assert (report.compressed, report.held, report.already, report.exit) == (1, 2, 9, ExitCode.OK)


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((), ExitCode.OK),
        ((ExitCode.VANISHED,), ExitCode.VANISHED),
        ((ExitCode.VANISHED, ExitCode.PARTIAL, ExitCode.VANISHED), ExitCode.PARTIAL),
    ],
)
def test_the_worst_problem_decides_the_exit_code(codes: tuple[ExitCode, ...], code: ExitCode) -> None:
    run, reported = totals(max_files=0)
    for one in codes:
        run.problem(FileError(b"a", "a: gone", code=one))
    assert reported == [Problem(one, b"a", "a: gone") for one in codes]
    assert (run.report().errors, run.report().exit) == (len(codes), code)
    assert not run.take(1)
    assert run.report().exit is (code or ExitCode.MAX_DELETE), "a problem outweighs a limit"


def test_skipped_files_and_notices_are_no_errors() -> None:
    run, reported = totals()
    run.skip(b"a", "a: skipped")
    run.notice(b"b", "b: look")
    assert reported == [Problem(ExitCode.OK, b"a", "a: skipped"), Problem(ExitCode.OK, b"b", "b: look")]
    report = run.report()
    assert (report.skipped, report.errors, report.exit) == (1, 0, ExitCode.OK)


def test_progress_is_of_all_content_so_far() -> None:
    run, reported = totals()
    run.total = 100
    run.advance(30)
    run.advance(20)
    run.reach(45)
    assert reported == [Progressed("share", done, 100) for done in (30, 50, 45)]
