"""The options of `rdc sync` that end a run at a time."""

from __future__ import annotations

import time

from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import ExitCode, RdcError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENDING_GROUP", "Deadline", "read_deadline"]

ENDING_GROUP = OptionGroup(
    "Ending",
    (
        Option(
            ("--stop-after", "--time-limit"),
            "end with 30 after this many minutes, as if interrupted",
            "MINUTES",
            note="""Nothing is lost: files that are complete are in place, and the next run goes on from
                the others. The last of `--stop-after` and `--stop-at` counts. One long file that SRC
                reads may take until its end.""",
            example="--stop-after=60 src/ host:backup/",
            watch=False,
        ),
        Option(
            ("--stop-at",),
            "the same at that time, such as 23:59 or 2030-12-31T23:59",
            "TIME",
            note="""TIME is local and lies ahead. Parts may be left out, and the next possible time counts:
                `14:00`, `:59`, `31`, `1-30` or `2030/12/31T23:59`.""",
            example="--stop-at=06:00 src/ host:backup/",
            watch=False,
        ),
    ),
)

MINUTES = 10**7
"""The most minutes: nineteen years. A longer time is none."""


class Deadline:
    """A StopSignal that is set at a time."""

    def __init__(self, given: str, at: float, clock: Callable[[], float]) -> None:
        """`given`: the option as the user wrote it. `at`: seconds on `clock`."""
        self.given = given
        self.at = at
        self.clock = clock

    def is_set(self) -> bool:
        return self.clock() >= self.at

    @property
    def error(self) -> RdcError:
        """The error of a run that it ended."""
        return RdcError(
            f"stopped by {self.given}; what is done stays, and the next run goes on from there",
            code=ExitCode.TIMEOUT,
        )


def read_deadline(words: Words) -> Deadline | None:
    """When the run has to end; None for no such time. The last of the options counts. Raises UsageError."""
    given = words.last("--stop-after", "--stop-at")
    if given is None:
        return None
    shown = f"{given.key}={given.value}"
    if given.key == "--stop-at":
        from rdc.cli.options.stop_time import next_time

        at = next_time(given.value, time.time())
        if at is None:
            raise UsageError(f"{shown}: a time to come is expected, such as 23:59 or 2030-12-31T23:59")
        return Deadline(shown, at, time.time)
    # isascii() excludes the digits of other scripts. The length bounds the time of int().
    text = given.value
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
        raise UsageError(f"{shown}: a number of minutes is expected, 1 or more")
    return Deadline(shown, time.monotonic() + 60 * min(int(text), MINUTES), time.monotonic)
