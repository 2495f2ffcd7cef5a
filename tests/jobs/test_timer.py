"""Schedules: when a job is due, and the same as a systemd timer and a crontab line."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import UsageError
from rdc.jobs.timer import Schedule, cron_line, parse_schedule, unit_files

FORMS = {
    "hourly": ("*-*-* *:00:00", "0 * * * *"),
    "daily": ("*-*-* 00:00:00", "0 0 * * *"),
    "daily 03:30": ("*-*-* 03:30:00", "30 3 * * *"),
    "Weekly": ("Mon *-*-* 00:00:00", "0 0 * * 1"),
    "weekly sunday 4:05": ("Sun *-*-* 04:05:00", "5 4 * * 0"),
    "weekly sat": ("Sat *-*-* 00:00:00", "0 0 * * 6"),
    "monthly": ("*-*-01 00:00:00", "0 0 1 * *"),
    "monthly 15 05:00": ("*-*-15 05:00:00", "0 5 15 * *"),
    "15m": ("*-*-* *:00/15:00", "*/15 * * * *"),
    "6h": ("*-*-* 00/6:00:00", "0 */6 * * *"),
    "24h": ("*-*-* 00:00:00", "0 0 * * *"),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    schedule = parse_schedule(text)
    assert (schedule.calendar, schedule.cron) == FORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        *("", "often", "daily 24:00", "daily 3", "daily 03:60", "daily 3:5", "weekly someday", "monthly 31"),
        *("7m", "5h", "0m", "m", "-5m", "hourly 03:30", "daily mon 03:30", "monthly 1 2 03:00", "٣m"),
        "15m 03:30",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no schedule"):
        parse_schedule(text)


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/St_Johns"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize("text", FORMS)
def test_the_next_time_is_the_first_due_minute(text: str, zone: str) -> None:
    """Each minute after now is looked at, also across the end of summer time and its beginning."""
    schedule = parse_schedule(text)
    for now in (1_774_742_399, 1_792_886_390, 1_800_000_030):
        moment = now // 60 * 60 + 60
        while not schedule.is_due(time.localtime(moment)):
            moment += 60
        assert schedule.next_after(now) == moment, zone


def _matches(field: str, value: int) -> bool:
    """Return whether a field of crontab(5) has a value."""
    if field.startswith("*"):
        return value % int(field.partition("/")[2] or 1) == 0
    return int(field) == value


@settings(max_examples=200)
@given(st.sampled_from(sorted(FORMS)), st.integers(0, 2_000_000_000))
def test_cron_means_the_same(text: str, moment: int) -> None:
    schedule = parse_schedule(text)
    minute, hour, day, _, week_day = schedule.cron.split()
    at = time.gmtime(moment)
    due = _matches(minute, at.tm_min) and _matches(hour, at.tm_hour) and _matches(day, at.tm_mday)
    assert schedule.is_due(at) == (due and _matches(week_day, (at.tm_wday + 1) % 7))


def test_words_of_a_command_stay_words() -> None:
    command = ("/opt/my rdc/100%$x", "run", "a")
    service, timer = unit_files("a", Schedule(0), command)
    assert 'ExecStart="/opt/my rdc/100%%$$x" run a\n' in service.text
    assert (service.name, timer.name) == ("rdc-a.service", "rdc-a.timer")
    assert "OnCalendar=*-*-* *:00:00\n" in timer.text
    assert cron_line(Schedule(0), command) == "0 * * * * '/opt/my rdc/100\\%$x' run a"
