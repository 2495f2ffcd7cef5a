"""Parse a time as rsync's --stop-at does: leading parts may be omitted.

Regular expressions and dates load when such a time is given.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from datetime import date

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
