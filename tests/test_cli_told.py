"""The frame around a job: its output hears of every end but success, once, and is closed."""

from __future__ import annotations

import pytest

from rdc.cli.environment import OutputClosedError
from rdc.cli.told import told
from rdc.errors import ExitCode, RdcError


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []
        self.closed = 0

    def fail(self, error: RdcError) -> None:
        assert not self.closed
        self.heard.append((error.code, str(error)))

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("end", "heard"),
    [
        (RdcError("full", code=ExitCode.FILE_IO), [(ExitCode.FILE_IO, "full")]),
        (KeyboardInterrupt(), [(ExitCode.INTERRUPTED, "interrupted")]),
        (ZeroDivisionError("by 0"), [(ExitCode.USAGE, "internal error: ZeroDivisionError: by 0")]),
        (OutputClosedError(), []),
        (SystemExit(3), []),
    ],
)
def test_an_end_is_told_and_passed_on(end: BaseException, heard: list[tuple[int, str]]) -> None:
    output = Listener()
    with pytest.raises(type(end)) as caught, told(output):
        raise end
    assert caught.value is end
    assert (output.heard, output.closed) == (heard, 1)


def test_success_is_the_jobs_own_to_tell() -> None:
    output = Listener()
    with told(output):
        assert not output.closed
    assert (output.heard, output.closed) == ([], 1)
