"""Schedules of jobs: how they are read, when they are due, and as a systemd timer or a crontab line."""

from __future__ import annotations

import os
import time

from rdc.errors import UsageError
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTH_DAYS = 28
"""The last day of `monthly`: each month has it."""

EXPECTED = (
    "expected hourly, daily, weekly or monthly, such as 'daily 03:30', 'weekly sun 04:00' or"
    " 'monthly 1 05:00', or a part of an hour or day such as 15m or 6h"
)

MARK = "# Written by rdc jobs timer.\n"
"""The first line of a unit file. A file without it is never replaced or removed."""


class Schedule(Record):
    """Times at which a job is due, in local time. -1 stands for each one."""

    minute: int
    hour: int = -1
    month_day: int = -1
    week_day: int = -1
    """0 is Monday."""
    minutes: int = 0
    """The minutes between two runs within an hour, the first at `minute`. It divides 60. 0: one run an hour
    at most."""
    hours: int = 0
    """The hours between two runs within a day, the first at midnight. It divides 24. 0: `hour` decides."""

    @property
    def calendar(self) -> str:
        """The schedule as systemd's OnCalendar, systemd.time(7)."""
        if self.minutes:
            return f"*-*-* *:00/{self.minutes}:00"
        hour = f"00/{self.hours}" if self.hours else "*" if self.hour < 0 else f"{self.hour:02}"
        week_day = f"{DAYS[self.week_day].capitalize()} " if self.week_day >= 0 else ""
        month_day = f"{self.month_day:02}" if self.month_day >= 0 else "*"
        return f"{week_day}*-*-{month_day} {hour}:{self.minute:02}:00"

    @property
    def cron(self) -> str:
        """The schedule as the first five fields of crontab(5)."""
        minute = f"*/{self.minutes}" if self.minutes else str(self.minute)
        hour = f"*/{self.hours}" if self.hours else "*" if self.hour < 0 else str(self.hour)
        month_day = "*" if self.month_day < 0 else str(self.month_day)
        week_day = "*" if self.week_day < 0 else str((self.week_day + 1) % 7)
        return f"{minute} {hour} {month_day} * {week_day}"

    def is_due(self, moment: time.struct_time) -> bool:
        """Return whether the job is due in the minute of a local time."""
        due = moment.tm_min % self.minutes == 0 if self.minutes else moment.tm_min == self.minute
        if self.hours:
            due = due and moment.tm_hour % self.hours == 0
        return (
            due
            and self.hour in (-1, moment.tm_hour)
            and self.month_day in (-1, moment.tm_mday)
            and self.week_day in (-1, moment.tm_wday)
        )

    def next_after(self, now: float) -> int:
        """Return the first due time after `now`, in seconds since 1970. A time that a change of the clock
        skips is due on a later day."""
        moment = int(now) // 60 * 60 + 60
        # 62 days hold each day of a month at least once, and each hour of each of them.
        last = moment + 62 * 86_400
        while moment < last:
            local = time.localtime(moment)
            if self.is_due(local):
                return moment
            # Days and hours that cannot match are passed over, up to the next full hour.
            fits = self.month_day in (-1, local.tm_mday) and self.week_day in (-1, local.tm_wday)
            far = not fits or self.hour not in (-1, local.tm_hour)
            moment += (60 - local.tm_min) * 60 if far else 60
        return last


def parse_schedule(text: str) -> Schedule:
    """Read a schedule; rdc/jobs/JOBS.md has the forms. Raises UsageError.

    >>> parse_schedule("weekly sun 04:30").cron
    '30 4 * * 0'
    """
    words = text.lower().split()
    first, *rest = words or [""]
    hour, minute = 0, 0
    if rest and ":" in rest[-1]:
        hour, minute = _time(rest.pop(), text)
    if first == "hourly" and len(words) == 1:
        return Schedule(0)
    if first == "daily" and not rest:
        return Schedule(minute, hour)
    if first == "weekly" and len(rest) <= 1:
        day = rest[0][:3] if rest else "mon"
        if day in DAYS and (not rest or rest[0] == day or rest[0].endswith("day")):
            return Schedule(minute, hour, week_day=DAYS.index(day))
    if first == "monthly" and len(rest) <= 1:
        day = rest[0] if rest else "1"
        if _is_number(day) and 1 <= int(day) <= MONTH_DAYS:
            return Schedule(minute, hour, month_day=int(day))
    if len(words) == 1 and _is_number(first[:-1]) and int(first[:-1]):
        count, unit = int(first[:-1]), first[-1]
        if unit == "m" and count < 60 and 60 % count == 0:
            return Schedule(0, minutes=count)
        if unit == "h" and count <= 24 and 24 % count == 0:
            return Schedule(0, hours=count) if count < 24 else Schedule(0, 0)
    raise UsageError(f"'{text[:80]}' is no schedule; {EXPECTED}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 2


def _time(text: str, whole: str) -> tuple[int, int]:
    hour, _, minute = text.partition(":")
    if _is_number(hour) and _is_number(minute) and len(minute) == 2 and int(hour) < 24 and int(minute) < 60:
        return int(hour), int(minute)
    raise UsageError(f"'{whole[:80]}' is no schedule; a time is HH:MM, from 00:00 to 23:59")


class UnitFile(Record):
    """A file of a systemd user timer."""

    name: str
    text: str


def unit_files(job: str, schedule: Schedule, command: Sequence[str]) -> tuple[UnitFile, UnitFile]:
    """Return the service and the timer of a job. `command`: what starts it."""
    words = " ".join(map(_quoted_for_systemd, command))
    service = f"""\
{MARK}[Unit]
Description=rdc job {job}

[Service]
Type=oneshot
ExecStart={words}
"""
    timer = f"""\
{MARK}[Unit]
Description=rdc job {job}, on schedule

[Timer]
OnCalendar={schedule.calendar}
Persistent=true

[Install]
WantedBy=timers.target
"""
    return UnitFile(f"rdc-{job}.service", service), UnitFile(f"rdc-{job}.timer", timer)


def cron_line(schedule: Schedule, command: Sequence[str]) -> str:
    """Return a line of crontab(5)."""
    import shlex

    # cron turns % into the end of the line.
    return f"{schedule.cron} {shlex.join(command)}".replace("%", "\\%")


def _quoted_for_systemd(word: str) -> str:
    """Return a word of ExecStart, systemd.syntax(7): % and $ are expanded even in quotes."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return plain if word and not any(ch in word for ch in " \t\"'\\;") else f'"{plain}"'


def unit_directory(home: str, config: str) -> str:
    """Return the directory of the user's units. `config`: $XDG_CONFIG_HOME, or ""."""
    base = config if os.path.isabs(config) else os.path.join(home, ".config")
    return os.path.join(base, "systemd", "user")


def runs_systemd() -> bool:
    """Return whether systemd is this machine's init, as sd_booted(3)."""
    return os.path.isdir("/run/systemd/system")
