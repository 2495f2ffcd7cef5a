"""`rdc run NAME...`: run named jobs of the settings file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words, settings_file
from rdc.cli.verb import HelpText, keep_freed_memory, load_verb, run_with_settings
from rdc.errors import ExitCode, RdcError, UsageError, worse
from rdc.jobs.config import EXAMPLE, chosen_jobs, read_jobs, unknown_job
from rdc.jobs.records import Job, JobKind, Outcome, figures_of
from rdc.jobs.run import JobRunner, JobState
from rdc.lean.typed import TypeVar
from rdc.model.location import state_directory
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from rdc.files.own.output_file import Output

    class Recorded(Protocol):
        """Returns a function of the library that also records its report."""

        def __call__(self, do: Callable[..., T], /) -> Callable[..., T]: ...


T = TypeVar("T")

SUMMARY = "run named jobs: syncs, two-way syncs and snapshots of config.toml"

_PASSED_ON = ("--dry-run", "--verbose", "--quiet", "--json")
"""Options that the verb of the job gets, if it has them."""

_NO_RUN = {
    "--dry-run": "rdc run -n {} shows what would be done",
    "--forget": "it would end the pair at each run",
    "--help": "the job would do nothing",
    "--list-only": "the job would do nothing",
    "--status": "the job would do nothing",
}
"""Options with which a verb does something else than the job. Its run would be recorded as a success."""

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(
                ("--all",),
                "run all jobs, in the order of the file; continue after a failure",
                note="The exit code is that of a job that failed, 23 if one of them had it.",
                example="--all",
            ),
            Option(
                ("-n", "--dry-run"),
                "show what would be done; run no hooks and record nothing",
                example="-n photos",
            ),
            Option(
                ("--metrics",),
                "write results for Prometheus to FILE, as node_exporter's textfile collector reads them",
                "FILE",
                note="""The file has the last run of every job of config.toml, so several `rdc run` can share
                one. It is replaced at once, and never if it holds anything else. Its only labels are names
                of jobs.""",
                example="--all --metrics=/var/lib/prometheus/node-exporter/rdc.prom",
            ),
            Option(("-v", "--verbose"), "print each changed entry", example="-v photos"),
            Option(("-q", "--quiet"), "show only errors", example="-q photos"),
            Option(
                ("--json",),
                "print one JSON event per line on stdout instead",
                example="--json photos",
            ),
            HELP,
        ),
    ),
)

_INTRODUCTION = f"""\
Usage: rdc run [OPTIONS] NAME...
       rdc run [OPTIONS] --all

Examples:
  rdc run photos                run the job photos
  rdc run -n photos             show what it would change
  rdc run --all                 run all jobs
  rdc jobs                      list jobs, their last runs and when they are due

A job is a table of ~/.config/rdc/config.toml, such as:

{"".join(f"  {line}" + chr(10) for line in EXAMPLE.splitlines())}
Further keys: kind ("sync", "unite" or "store"), exclude, delete, keep-undo, rdcignore, name, options (a list
of further options of the verb), schedule, before, after and on-failure (hooks: lists of a program and its
arguments, started without a shell), and hook-seconds (their time limit, 600 by default). A table [hosts.nas]
has the settings rsh, remote-path, bwlimit, compress, keys and timeout of all connections to nas.

Only one run of a job is active at a time. The hook on-failure runs if the job or the hook before it failed.
Hooks get the variables RDC_JOB, RDC_HOOK and, after the run, RDC_EXIT_CODE.
"""

_CLOSING = """
Exit codes: those of the job's verb; 1 usage, 11 the hook before the job failed and nothing was done, 23 the
hook after it failed, 40 the job is running already.
"""

help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc run` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc run")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    path = settings_file(environment.environ)
    jobs = read_jobs(path, environment.environ)
    if parsed.has("--all") and parsed.operands:
        raise UsageError("--all and NAME exclude each other (see rdc run --help)")
    if not (jobs or parsed.operands):
        raise UsageError(unknown_job("", jobs, path))
    if not (parsed.has("--all") or parsed.operands):
        raise UsageError(f"rdc run needs the name of a job: {', '.join(jobs)} (or --all)")
    chosen = list(jobs.values()) if parsed.has("--all") else chosen_jobs(jobs, parsed.operands, path)
    for job in chosen:
        _check_options(job)
    passed_on = [key for key in _PASSED_ON if parsed.has(key)]
    if parsed.has("--dry-run"):
        for job in chosen:
            if not _has(job, "--dry-run"):
                raise UsageError(f"the job {job.name} is of kind {job.kind.value}, which has no --dry-run")
        return _each(chosen, lambda job: _show(job, passed_on, environment))
    runner = JobRunner(
        JobState(state_directory(environment.environ)),
        environment.environ,
        lambda job: _perform(job, passed_on, environment),
        lambda text: environment.talk(f"rdc: {text}\n"),
    )
    output = _claimed_metrics(parsed)
    try:
        return _each(chosen, runner.run)
    finally:
        if output is not None:
            _write_metrics(output, list(jobs.values()), runner.state)


def _check_options(job: Job) -> None:
    """Raise UsageError for an option of a job that lacks its value, and for one that makes no run of it.

    An option that the verb does not know is left to the verb, which has advice about many.
    """
    words, groups = job.words, load_verb(job.kind.value).OPTIONS
    command = f"rdc {job.kind.value}"
    # Patterns and other values are within their words, so this is the one that ends the options.
    options = words[: words.index("--")]
    try:
        given = parse_words([*options, "--"], groups, {}, command=command).given
    except UsageError:
        return
    try:
        parse_words(options, groups, {}, command=command)
    except UsageError as error:
        # It would take the word after it, which ends the options.
        raise UsageError(f"{job.name}: options: {error}") from error
    for option in given:
        if option.key in _NO_RUN:
            why = _NO_RUN[option.key].format(job.name)
            raise UsageError(f"{job.name}: options: {option.key} is for no job: {why}; leave it out")


def _has(job: Job, key: str) -> bool:
    """Return whether the verb of a job has an option."""
    groups = load_verb(job.kind.value).OPTIONS
    return any(option.key == key for group in groups for option in group.options)


def _each(jobs: Sequence[Job], run_one: Callable[[Job], ExitCode]) -> ExitCode:
    code = ExitCode.OK
    for job in jobs:
        code = worse(code, run_one(job))
    return code


def _show(job: Job, passed_on: Sequence[str], environment: Environment) -> ExitCode:
    """Make a dry run of a job."""
    try:
        return _perform(job, passed_on, environment).code
    except RdcError as error:
        environment.talk(f"rdc: {job.name}: {error}\n")
        return error.code


def _perform(job: Job, passed_on: Sequence[str], environment: Environment) -> Outcome:
    """Run the verb of a job in this process, with the settings of all runs. Raises RdcError."""
    reports: list[object] = []

    def recorded(do: Callable[..., T]) -> Callable[..., T]:
        def done(*operands: object, **others: object) -> T:
            report = do(*operands, **others)
            reports.append(report)
            return report

        return done

    words = [*(key for key in passed_on if _has(job, key)), *job.words]
    code = run_with_settings(job.kind.value, words, environment, _verb_of(job.kind, recorded))
    # A run that stopped at its guard and then went on by consent has two reports.
    return Outcome(code, figures_of(job.kind, reports[-1]) if reports else ())


def _verb_of(kind: JobKind, recorded: Recorded) -> Callable[[Sequence[str], Environment], ExitCode]:
    """Return the verb of a kind of jobs, whose report is recorded."""
    from functools import partial

    if kind is JobKind.SYNC:
        from rdc.cli.verbs import sync
        from rdc.library.trees import sync as do_sync

        keep_freed_memory()
        return partial(sync.run, syncer=recorded(do_sync))
    if kind is JobKind.UNITE:
        from rdc.library.trees import unite
        from rdc.uniting import command as unite_command

        return partial(unite_command.run, uniter=recorded(unite))
    from rdc.library.stores import store_put
    from rdc.store import command as store_command

    return partial(store_command.run, putter=recorded(store_put))


def _claimed_metrics(words: Words) -> Output | None:
    """Look at the place of --metrics before any job runs. Raises RdcError if it may not be written."""
    given = words.last("--metrics")
    if given is None:
        return None
    if not given.value:
        raise UsageError("--metrics needs a file, such as: --metrics=/var/lib/node_exporter/rdc.prom")
    from rdc.files.own.output_file import Output, OutputKind, claim_outputs
    from rdc.jobs.report import METRICS_HEAD

    kind = OutputKind("metrics of rdc run", lambda head: head.startswith(METRICS_HEAD))
    output = Output(os.fsencode(given.value), kind)
    claim_outputs([output])
    return output


def _write_metrics(output: Output, jobs: Sequence[Job], state: JobState) -> None:
    from rdc.files.own.output_file import write_output
    from rdc.jobs.report import metrics

    runs = [run for job in jobs if (run := state.last_run(job.name)) is not None]
    write_output(output, (metrics(runs).encode(),))
