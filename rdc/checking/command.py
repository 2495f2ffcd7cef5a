"""`rdc check SRC DST`: compare two trees and change neither.

It compares content, whatever sizes, times and catalogs say; rdc/checking/CHECK.md has what holds.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from rdc.checking.records import CheckOptions, CheckReport, EntryDiffers, Sample
from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import FILTER_GROUP, ReadRuleFile, read_rule_file
from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS, SYNC_OPTIONS, SyncRequest, read_request
from rdc.cli.verb import (
    HelpText,
    json_output,
    keep_freed_memory,
    perform,
    reporting_usage,
    short_help,
)
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.lean.records import Record, replace
from rdc.model.options import Option
from rdc.model.sync import CONNECTION
from rdc.model.sync import OPTIONS as SESSION_OPTIONS
from rdc.report.output import Bar, Output, TerminalOutput, counted, elapsed_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


_SYNC = {option.key: option for group in SYNC_OPTIONS for option in group.options}

SEED_DIGITS = 18

OPTIONS = (
    OptionGroup(
        "Compare (always: names, kinds, link targets and content)",
        (
            Option(("--no-times", "--no-t"), "do not compare modification times", common=True),
            Option(("--no-perms", "--no-p"), "do not compare permissions", common=True),
            Option(
                ("--owner",),
                "compare owners and groups (default: only as root)",
                common=True,
                note="""Without it, owners and groups are compared where the side that writes in a sync would
                keep them: where this rdc runs as root. Where they are not compared, the setuid and setgid
                bits are not compared either.""",
            ),
            Option(("--no-owner", "--no-o"), "never compare owners and groups"),
            Option(
                ("-H", "--hard-links"),
                "compare which files are hard links to each other",
                common=True,
                note="""A file differs if it shares its inode with other files at one end than at the other.
                Only files that both ends have count.""",
            ),
            Option(("-X", "--xattrs"), "compare extended attributes", common=True),
            Option(("-A", "--acls"), "compare ACLs", common=True),
            _SYNC["--one-file-system"],
        ),
    ),
    OptionGroup(
        "Read",
        (
            Option(
                ("--sample",),
                "read about RATE of the files, such as 1% or 0.01",
                "RATE",
                common=True,
                note="""All names and metadata are compared in any case. The choice depends on the path and
                `--seed` alone, so that the next run reads the same files. The summary says which share
                was read.""",
                example="--sample=1% src/ backup/",
            ),
            Option(
                ("--seed",),
                "seed of the choice of --sample (default: 0)",
                "N",
                note="""Another number chooses other files. A run a night with a number of its own reads all
                files in time.""",
                example="--sample=1% --seed=7 src/ backup/",
            ),
            Option(
                ("--trust-catalog",),
                "do not read files that are in the catalogs of both sides",
                note="""A catalog knows a file by device, inode, size, mtime and ctime. A disk that changed
                bytes by itself stays unnoticed in such a file. New signatures are remembered, too.""",
            ),
            Option(
                ("--catalog",),
                "directory of the trusted catalog (default: RDC_CATALOG, or your cache directory)",
                "DIR",
                example="--trust-catalog --catalog=/var/tmp/rdc src/ backup/",
            ),
        ),
    ),
    FILTER_GROUP,
    OptionGroup(
        CONNECTION,
        (
            *(_SYNC[key] for key in ("--rsh", "--remote-path", "--keys")),
            *(
                option
                for declared in SESSION_OPTIONS.values()
                if declared.check and declared.group == CONNECTION
                for option in declared.options
            ),
        ),
    ),
    OptionGroup(
        "Show",
        (
            Option(("-q", "--quiet"), "show only errors", common=True),
            Option(("--progress",), "show progress, as lines if no bar can be drawn"),
            replace(_SYNC["--json"], common=True),
            HELP,
        ),
    ),
    OptionGroup(
        "Always on",
        (
            Option(("-a", "--archive"), "compare everything that rdc sync keeps"),
            Option(("-r", "--recursive"), "descend into directories"),
            Option(("-l", "--links"), "compare symlinks as symlinks"),
            Option(("-c", "--checksum"), "compare content"),
        ),
        names_only=True,
    ),
)


class CheckRequest(Record):
    """The checked command line of `rdc check`."""

    sync: SyncRequest
    """The operands, the connection, and the options that rdc sync has as well."""
    options: CheckOptions


def parse_check(words: list[str]) -> Words:
    """Parse the words after `rdc check`. Raises UsageError."""
    return parse_words(words, OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc check", of_sync=SYNC_OPTIONS)


def read_check(words: Words, read_rule_file: ReadRuleFile) -> CheckRequest:
    """Read the request. Raises UsageError for a contradiction, RdcError for an unreadable rule file."""
    request = read_request(words, read_rule_file, command="rdc check")
    options = CheckOptions(
        session=replace(request.options, times=True, perms=True),
        times=not words.has("--no-times"),
        modes=not words.has("--no-perms"),
        trust_catalog=words.has("--trust-catalog"),
        sample=_sample(words),
    )
    return CheckRequest(request, options)


def _sample(words: Words) -> Sample | None:
    last = words.last("--sample")
    if last is None:
        if words.has("--seed"):
            raise UsageError("--seed needs --sample")
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(%?)", last.value)
    share = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--sample={last.value}: a part of the files is expected, such as 1% or 0.01")
    whole = f"a whole number of at most {SEED_DIGITS} digits is expected"
    return Sample(share, words.number("--seed", 0, whole, digits=SEED_DIGITS))


SUMMARY = "compare two directories by content, here or on another host; change nothing"

_INTRODUCTION = """\
Usage: rdc check [OPTIONS] SRC DST

Examples:
  rdc check src/ backup/                 list the entries that differ, and how
  rdc check src/ host:backup/            the same over ssh; only digests are sent
  rdc check --sample=1% src/ backup/     all metadata, but the content of only 1% of the files
  rdc check -q src/ backup/ && echo equal
                                         for scripts: 0 equal, 1 different
"""

_MORE_EXAMPLES = """\
  rdc check src/ rdc://host/module/      the same with a daemon; the module may be read-only
  rdc check --no-times --exclude='*.o' src/ backup/
                                         ignore modification times and object files
"""

_ABOUT = """
SRC and DST mean the same as in rdc sync. Both sides read every file and compare digests; neither is changed.
Equal sizes and times are not taken as proof of equal content. Each line of output lists how an entry differs,
then the entry. The words are: missing (at DST), extra (at DST), kind, content, symlink, time, mode, owner,
group, links, acls, xattrs.
"""

_CLOSING = """
Exit codes: 0 equal, 1 different, 64 usage, 23 something could not be read, 24 files changed during the run,
2 the remote rdc does not support check, 5 refused by a daemon, 10, 12, 30, 35 and 127 as for rdc sync.
"""


help_text = HelpText(
    _INTRODUCTION + _MORE_EXAMPLES + _ABOUT, OPTIONS, _CLOSING, short_help("check", _INTRODUCTION + _ABOUT)
)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc check` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment), _own_codes():
        parsed = parse_check(list(words))
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        request = read_check(parsed, lambda name: read_rule_file(name, environment))
    keep_freed_memory()
    return _perform(request, environment)


@contextlib.contextmanager
def _own_codes() -> Iterator[None]:
    """Exit code 1 of this verb means that the trees differ, so wrong usage gets another one."""
    try:
        yield
    except RdcError as error:
        if error.code is ExitCode.USAGE:
            error.code = ExitCode.CHECK_USAGE
        raise


def _perform(request: CheckRequest, environment: Environment) -> ExitCode:
    from rdc.library.trees import check

    sync = request.sync
    output = json_output(environment) if sync.json else _terminal(request, environment)

    def job() -> CheckReport:
        with sync.catalog.store() as catalog:
            return check(
                sync.source,
                sync.destination,
                request.options,
                shell=sync.shell,
                reporter=output,
                on_difference=output,
                catalog=catalog,
                keys=sync.keys,
            )

    with _own_codes():
        return perform(output, job).exit


def _terminal(request: CheckRequest, environment: Environment) -> Output:
    style = request.sync.style
    bar = environment.progress(quiet=style.quiet, lines=style.progress)
    return CheckTerminal(environment, bar, quiet=style.quiet, local=style.local)


_WIDTH = 12
"""Columns of the words that tell how an entry differs."""


class CheckTerminal(TerminalOutput):
    """A line for each entry that differs on stdout, problems and the summary on stderr."""

    def __init__(
        self,
        environment: Environment,
        bar: Bar | None,
        *,
        quiet: bool = False,
        local: bool = False,
    ) -> None:
        """`local`: both ends are this machine."""
        super().__init__(environment.data, environment.talk, bar, quiet=quiet, dials=not local)
        self._clock = environment.clock
        self._began = environment.clock()
        self._local = local

    def __call__(self, event: object, /) -> None:
        if not isinstance(event, EntryDiffers):
            super().__call__(event)
        elif not self._quiet:
            self._data(difference_line(event) + "\n")

    def summary(self, report: CheckReport) -> str:
        return _summary(report, self._clock() - self._began, local=self._local)


def difference_line(found: EntryDiffers) -> str:
    """`content,time  docs/a.txt`: the aspects, then the path."""
    return f"{','.join(found.aspects.names):<{_WIDTH}}  {printable(found.path_bytes)}"


def _summary(report: CheckReport, seconds: float, *, local: bool) -> str:
    """`3 of 12 entries differ (1 missing, 1 extra); compared the content of 9 files, 1.2 MB; ...`."""
    total = counted(report.entries, "entry", "entries")
    if report.different:
        sides = [
            f"{count:,} {word}"
            for count, word in ((report.missing, "missing"), (report.extra, "extra"))
            if count
        ]
        head = f"{counted(report.different, 'difference')} in {total}" + (
            f" ({', '.join(sides)})" if sides else ""
        )
    else:
        head = f"no difference in {total}"
    read = f"compared the content of {counted(report.files_compared, 'file')}"
    if report.files_compared < report.files:
        share = 100 * report.bytes_compared / report.total_bytes if report.total_bytes else 0.0
        read += f" of {report.files:,}"
        size = f"{size_text(report.bytes_compared)} of {size_text(report.total_bytes)}, {share:.1f} %"
    else:
        size = size_text(report.bytes_compared)
    parts = [head, f"{read}, {size}"]
    took = elapsed_text(seconds)
    if not local:
        took = (
            f"sent {size_text(report.bytes_sent)}, received {size_text(report.bytes_received)}"
            f" in {counted(report.round_trips, 'round trip')}, {took}"
        )
    parts.append(took)
    if report.errors or report.exit not in (ExitCode.OK, ExitCode.DIFFERENT):
        parts.append(f"{counted(report.errors, 'problem')}, exit code {int(report.exit)}")
    return "; ".join(parts)
