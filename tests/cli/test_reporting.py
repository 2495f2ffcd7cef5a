"""`reporting` reports each failure once, reports no success, and closes the output."""

from __future__ import annotations

import pytest

from rdc.cli.environment import OutputClosedError
from rdc.cli.verb import reporting
from rdc.errors import ExitCode, RdcError
from rdc.report.output import Output


class Listener(Output):
    def __init__(self) -> None:
        self.reported: list[tuple[int, str]] = []
        self.closed = 0

    def fail(self, error: RdcError) -> None:
        assert not self.closed
        self.reported.append((error.code, str(error)))

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("end", "reported"),
    [
        (RdcError("full", code=ExitCode.FILE_IO), [(ExitCode.FILE_IO, "full")]),
        (KeyboardInterrupt(), [(ExitCode.INTERRUPTED, "interrupted")]),
        (ZeroDivisionError("by 0"), [(ExitCode.USAGE, "internal error: ZeroDivisionError: by 0")]),
        (OutputClosedError(), []),
        (SystemExit(3), []),
    ],
)
def test_a_failure_is_reported_and_raised_again(end: BaseException, reported: list[tuple[int, str]]) -> None:
    output = Listener()
    with pytest.raises(type(end)) as caught, reporting(output):
        raise end
    assert caught.value is end
    assert (output.reported, output.closed) == (reported, 1)


def test_success_is_not_reported() -> None:
    output = Listener()
    with reporting(output):
        assert not output.closed
    assert (output.reported, output.closed) == ([], 1)
