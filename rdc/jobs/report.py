"""The list of jobs as text, and the last runs as metrics of Prometheus."""

from __future__ import annotations

import time

from rdc.errors import printable
from rdc.jobs.records import FIGURES, Job, JobRun
from rdc.jobs.run import described
from rdc.jobs.timer import parse_schedule
from rdc.report.output import elapsed_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def job_lines(
    jobs: Sequence[Job], last_run: Callable[[str], JobRun | None], running: Callable[[str], bool], now: float
) -> Iterator[str]:
    """Yield a head and a line for each job: its last run, the result, and when it is due next."""
    rows = [("JOB", "KIND", "LAST RUN", "TOOK", "RESULT", "NEXT")]
    for job in jobs:
        run = last_run(job.name)
        schedule = job.settings.schedule
        rows.append(
            (
                job.name,
                job.kind.value,
                "never" if run is None else _moment(run.started),
                "-" if run is None else elapsed_text(run.seconds),
                "running" if running(job.name) else "-" if run is None else described(run.code),
                _moment(parse_schedule(schedule).next_after(now)) if schedule else "-",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


def job_text(job: Job, run: JobRun | None, verb_line: str) -> Iterator[str]:
    """Yield the lines about one job: the command that it stands for, and its last run with all figures."""
    yield f"{job.name}: {printable(verb_line)}\n"
    if job.settings.schedule:
        yield f"  schedule           {job.settings.schedule}\n"
    if run is None:
        yield "  last run           never\n"
        return
    result = f"{_moment(run.started)}, {elapsed_text(run.seconds)}, {described(run.code)}"
    yield f"  last run           {result}\n"
    if run.succeeded != run.started:
        yield f"  last success       {_moment(run.succeeded) if run.succeeded else 'never'}\n"
    for figure in run.figures:
        shown = size_text(figure.value) if figure.name.endswith("bytes") else f"{figure.value:,}"
        yield f"  {figure.name.replace('_', ' '):<18} {shown}\n"


def _moment(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return f"@{seconds}"


METRICS_HEAD = b"# HELP rdc_job_"
"""The start of a file of metrics."""

_OF_RUN: tuple[tuple[str, str, Callable[[JobRun], float]], ...] = (
    ("last_run_timestamp_seconds", "When the last run began.", lambda run: run.started),
    ("last_success_timestamp_seconds", "When the last successful run began.", lambda run: run.succeeded),
    ("duration_seconds", "How long the last run took, hooks included.", lambda run: round(run.seconds, 3)),
    ("exit_code", "Exit code of the last run; 0 is success.", lambda run: run.code),
)


def metrics(runs: Sequence[JobRun]) -> str:
    """Return the last runs in the text format of Prometheus, for the textfile collector of node_exporter.

    Labels have the names of jobs alone, which need no escapes: no path, host or option is given away.
    """
    lines: list[str] = []

    def add(name: str, help_text: str, samples: list[tuple[str, float]]) -> None:
        if samples:
            lines.append(f"# HELP rdc_job_{name} {help_text}")
            lines.append(f"# TYPE rdc_job_{name} gauge")
            lines.extend(f'rdc_job_{name}{{job="{job}"}} {value}' for job, value in samples)

    for name, help_text, value in _OF_RUN:
        add(name, help_text, [(run.job, value(run)) for run in runs])
    for name, help_text in FIGURES.items():
        add(
            name,
            help_text,
            [(run.job, figure.value) for run in runs for figure in run.figures if figure.name == name],
        )
    return "".join(line + "\n" for line in lines)
