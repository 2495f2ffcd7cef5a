"""The options that end a run at a time, and the times that users write."""

from __future__ import annotations

import time

from rdc.cli.environment import OptionGroup, Words
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.lean.records import Record
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from datetime import date

ENDING_GROUP = OptionGroup(
    "Ending",
    (
        Option(
            ("--stop-after", "--time-limit"),
            "stop with exit code 30 after this many minutes, as if interrupted",
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


class Deadline(Record):
    """A StopSignal that is set at a time."""

    given: str
    """The option as the user wrote it."""
    at: float
    """Seconds on `clock`."""
    clock: Callable[[], float]

    def is_set(self) -> bool:
        return self.clock() >= self.at

    @property
    def error(self) -> RdcError:
        """The error of a run that it ended."""
        return RdcError(
            f"stopped by {self.given}; what is done stays, and the next run continues from there",
            code=ExitCode.TIMEOUT,
        )


def read_deadline(words: Words) -> Deadline | None:
    """Return when the run has to end; None for no such time. The last of the options counts. Raises
    UsageError."""
    given = words.last("--stop-after", "--stop-at")
    if given is None:
        return None
    shown = f"{given.key}={given.value}"
    if given.key == "--stop-at":
        at = next_time(given.value, time.time())
        if at is None:
            raise UsageError(f"{shown}: a time to come is expected, such as 23:59 or 2030-12-31T23:59")
        return Deadline(shown, at, time.time)
    # isascii() excludes the digits of other scripts. The length bounds the time of int().
    text = given.value
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text)):
        raise UsageError(f"{shown}: a number of minutes is expected, 1 or more")
    return Deadline(shown, time.monotonic() + 60 * min(int(text), MINUTES), time.monotonic)


# Parse a time as rsync's --stop-at does: leading parts may be omitted.
#
# Regular expressions and dates load when such a time is given.

_PARTS = (
    r"(?:(?:(?P<year>\d{4}|\d{2})[-/])?(?P<month>\d{1,2})[-/])?(?P<day>\d{1,2})"
    r"(?:T(?P<hour>\d{1,2}):(?P<minute>\d{2}))?|T?(?P<at_hour>\d{1,2})?:(?P<at_minute>\d{2})"
)

YEARS = 9
"""Years ahead in which a day is looked for: the 29th of February may be eight years away."""


def next_time(text: str, now: float) -> float | None:
    """Return the first time after `now` that `text` describes, in seconds since the epoch.

    `text` is [[[YEAR-]MONTH-]DAY[THOUR:MINUTE]] or [HOUR]:MINUTE, in local time; slashes may separate a date.
    A year of two digits lies in this century. None: no such time, or `text` has another form.
    """
    import re
    from datetime import datetime

    match = re.fullmatch(_PARTS, text, re.ASCII)
    if match is None:
        return None
    year, month, day, hour, minute = _numbers(match)
    days = _days(datetime.fromtimestamp(now).date(), year)
    fitting = (one for one in days if month in (None, one.month) and day in (None, one.day))
    hours = range(24) if hour is None else (hour,)
    times = (_at(one, at_hour, minute) for one in fitting for at_hour in hours)
    return next((found for found in times if found is not None and found > now), None)


def _numbers(match: re.Match[str]) -> tuple[int | None, int | None, int | None, int | None, int]:
    """Year, month, day, hour and minute; None for any. A date alone means midnight."""
    year, month, day = (_number(match[name]) for name in ("year", "month", "day"))
    hour, minute = _number(match["hour"] or match["at_hour"]), _number(match["minute"] or match["at_minute"])
    if minute is None:
        hour = minute = 0
    if year is not None and year < 100:
        year += 2000
    return year, month, day, hour, minute


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _days(today: date, year: int | None) -> Iterator[date]:
    """Yield the days that may be meant, in order."""
    from datetime import date, timedelta

    if year is None:
        first, last = today, today + timedelta(days=366 * YEARS)
    elif today.year <= year <= today.year + 1000:
        first, last = max(today, date(year, 1, 1)), date(year, 12, 31)
    else:
        return
    yield from map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))


def _at(day: date, hour: int, minute: int) -> float | None:
    from datetime import datetime

    try:
        return datetime(day.year, day.month, day.day, hour, minute).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
