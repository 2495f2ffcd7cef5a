"""Reads the jobs of the settings file. rdc/jobs/JOBS.md has their keys. Each error names file and key."""

from __future__ import annotations

import os

from rdc.errors import UsageError, printable
from rdc.jobs.records import Job, JobKind, JobSettings
from rdc.jobs.timer import parse_schedule
from rdc.limits import JOB_NAME_LENGTH, JOBS_MOST
from rdc.model.location import parse_location
from rdc.model.settings import read_settings, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.model.settings import Table

_FOR = {
    "delete": (JobKind.SYNC,),
    "rdcignore": (JobKind.SYNC, JobKind.STORE),
    "keep-undo": (JobKind.SYNC, JobKind.UNITE),
    "name": (JobKind.STORE,),
}
"""Keys that only some kinds of jobs have."""

EXAMPLE = """\
[jobs.photos]
source = "~/Photos/"
destination = "nas:photos/"
"""


def read_jobs(path: str | None, environ: Mapping[str, str]) -> dict[str, Job]:
    """Return the jobs of a settings file by name, in the order of the file. Raises UsageError and, for an
    unreadable file, RdcError."""
    table = None if path is None else read_settings(path)
    if table is None:
        return {}
    jobs: dict[str, Job] = {}
    for name, each in table.tables("jobs"):
        jobs[name] = _job(name, each, environ)
    if len(jobs) > JOBS_MOST:
        raise UsageError(f"{path}: {len(jobs)} jobs; the limit is {JOBS_MOST}")
    return jobs


def chosen_jobs(jobs: Mapping[str, Job], names: Sequence[str], path: str | None) -> list[Job]:
    """Return the jobs of these names. Raises UsageError for an unknown one."""
    for name in names:
        if name not in jobs:
            raise UsageError(unknown_job(name, jobs, path))
    return [jobs[name] for name in dict.fromkeys(names)]


def unknown_job(name: str, jobs: Mapping[str, Job], path: str | None) -> str:
    """Return the message for a job that does not exist."""
    import difflib

    where = printable(path) if path is not None else "config.toml (HOME is not set)"
    if not jobs:
        return f"there are no jobs in {where}; rdc run --help has an example of one"
    near = difflib.get_close_matches(name, jobs, n=1)
    advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(jobs)}"
    return f"there is no job '{printable(name)}' in {where}; {advice}"


def _job(name: str, table: Table, environ: Mapping[str, str]) -> Job:
    letters = name.replace("-", "").replace("_", "")
    if not (letters.isascii() and letters.isalnum() and name[:1].isalnum() and len(name) <= JOB_NAME_LENGTH):
        raise table.error(
            "name",
            f"a job's name has letters, digits, - and _, at most {JOB_NAME_LENGTH}, and begins with a letter"
            " or digit",
        )
    chosen = JobSettings(**table.read(settings_of(JobSettings)))
    kinds = [kind.value for kind in JobKind]
    if chosen.kind not in kinds:
        raise table.error("kind", f"expected {', '.join(kinds)}; found '{chosen.kind}'")
    kind = JobKind(chosen.kind)
    for key, having in _FOR.items():
        if kind not in having and getattr(chosen, key.replace("-", "_")):
            raise table.error(key, f"a job of kind {kind.value} has no such setting; leave it out")
    if not chosen.source or (kind is not JobKind.SYNC and len(chosen.source) > 1):
        raise table.error("source", "expected one directory" if chosen.source else "expected a directory")
    for word in chosen.options:
        if not word.startswith("-") or word == "--":
            raise table.error(
                "options", f'expected options such as "--hard-links" or "--level=6", found \'{word}\''
            )
    for key, hook in (("before", chosen.before), ("after", chosen.after), ("on-failure", chosen.on_failure)):
        if hook and not hook[0].strip():
            raise table.error(key, "expected a program and its arguments, found an empty name")
        if len(hook) == 1 and " " in hook[0] and not os.path.exists(_home(hook[0], environ)):
            # Only the program is shown, as in the messages of a run: arguments may hold a token.
            program = hook[0].split(maxsplit=1)[0]
            raise table.error(key, f'there is no shell; write a list: {key} = ["{program}", "ARGUMENT", ...]')
    if chosen.schedule:
        try:
            parse_schedule(chosen.schedule)
        except UsageError as error:
            raise table.error("schedule", str(error)) from error
    sources = tuple(_place(table, "source", text, environ) for text in chosen.source)
    destination = _place(table, "destination", chosen.destination, environ)
    if any(source.rstrip("/") == destination.rstrip("/") for source in sources):
        raise table.error("destination", "it is the source; a job copies to another place")
    return Job(name, kind, sources, destination, chosen)


def _place(table: Table, key: str, text: str, environ: Mapping[str, str]) -> str:
    """Return an operand of the job's verb. A relative path would depend on where the job is started."""
    try:
        location = parse_location(text)
    except UsageError as error:
        raise table.error(key, str(error)) from error
    if location.host is not None:
        return text
    path = _home(text, environ)
    if path.startswith("~/"):
        raise table.error(key, f"HOME is not set, which '{printable(text)}' needs; write /PATH")
    if not os.path.isabs(path):
        raise table.error(
            key, f"expected /PATH, ~/PATH, HOST:PATH or rdc://HOST/MODULE/, found '{printable(text)}'"
        )
    return path


def _home(text: str, environ: Mapping[str, str]) -> str:
    """Return a path with the user's home in place of a leading `~/`, which no shell expands here."""
    home = environ.get("HOME", "")
    return os.path.join(home, text[2:]) if text.startswith("~/") and os.path.isabs(home) else text


def hook_command(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a hook as it is started."""
    return (_home(words[0], environ), *words[1:]) if words else ()
