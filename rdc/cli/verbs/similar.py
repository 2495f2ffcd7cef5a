"""`rdc similar PATH...`: finds similar files that are not identical, and overlapping directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain

from rdc.cli.environment import Environment
from rdc.cli.options.catalog_options import CATALOG_GROUP, read_choice
from rdc.cli.options.document_options import (
    DOCUMENT_GROUP,
    FORMER_DOCUMENT_OPTIONS,
    refuse_document_options,
)
from rdc.cli.options.filter_options import FILTER_GROUP, read_rule_file, read_rules
from rdc.cli.options.resource_options import DEPTH, MAX_RATE, read_depth, read_max_rate
from rdc.cli.options.table import Option, OptionGroup, Words, parse_words, read_size
from rdc.cli.verb import HelpText, json_output, perform
from rdc.errors import ExitCode, UsageError
from rdc.model.similar import SimilarOptions
from rdc.report.output import Output, TerminalOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.similar import SimilarReport

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

SUMMARY = "find files that are nearly identical, and folders that overlap"

TOP = 20
"""The default number of files that --to shows."""

OPTIONS = (
    OptionGroup(
        "What is looked for",
        (
            Option(
                ("--threshold",),
                "resemblance from 0.01 to 1 (default: 0.5; with --to: 0.05; with --text: 0.8)",
                "PART",
            ),
            Option(("--to",), "rank the files that resemble FILE", "FILE"),
            Option(("--top",), f"with --to: at most N files (default: {TOP})", "N"),
            Option(("--folders",), "pairs of directories that overlap, in place of files"),
        ),
    ),
    DOCUMENT_GROUP,
    OptionGroup(
        "What takes part",
        (
            Option(("--min-size",), "files of at least SIZE (default: 512 bytes)", "SIZE"),
            Option(("--max-size",), "files of at most SIZE", "SIZE"),
            Option(("-x", "--one-file-system"), "stay on the file system of each PATH"),
            DEPTH,
            MAX_RATE,
        ),
    ),
    FILTER_GROUP,
    OptionGroup(
        "Output",
        (
            Option(("-0", "--null"), "names as they are, each followed by NUL, and one more after a group"),
            Option(("--csv",), "a table with a row for each file or pair of folders"),
            Option(("--json",), "events, one a line"),
            Option(("-q", "--quiet"), "no progress and no summary"),
            Option(("--help",), "show this text"),
        ),
    ),
    CATALOG_GROUP,
)

_INTRODUCTION = """\
Usage: rdc similar [OPTIONS] PATH...

Examples:
  rdc similar documents/                      groups of files that resemble each other
  rdc similar --to=report.txt documents/      what resembles this file, the most alike first
  rdc similar --folders backup/ old-backup/   directories with much in common
  rdc similar --text --write-kept=kept.jsonl corpus/*.jsonl.zst
                                              near-duplicates among documents

The figure before a file says which part of its content and that of the file most like it, taken together,
both hold. Candidates are found by samples of their content, then compared chunk by chunk. Identical files
stand as one, the others behind an equals sign; rdc dupes is for them.

With --text, documents are compared by shingles: five words in a row, whatever their case and punctuation. A
document is a plain file, or a row of a .jsonl, .ndjson, .json or .parquet file; the first three may be
packed, as .jsonl.gz or .json.zst. The first figure is the exact part of shingles in common, the second one
what 128 samples estimate.
"""

_FORMATS = ("--null", "--csv", "--json")


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc similar` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, FORMER_DOCUMENT_OPTIONS, command="rdc similar")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if not parsed.operands:
        raise UsageError("rdc similar needs a file or directory (see rdc similar --help)")
    if parsed.has("--text"):
        from rdc.cli.verbs.similar_text import run_text

        return run_text(parsed, environment)
    refuse_document_options(parsed, DOCUMENT_GROUP, "it needs --text (see rdc similar --help)")
    formats = {given.key for given in parsed.given if given.key in _FORMATS}
    jobs = {given.key for given in parsed.given if given.key in {"--to", "--folders"}}
    for several in (formats, jobs):
        if len(several) > 1:
            raise UsageError(f"{' and '.join(sorted(several))} exclude each other (see rdc similar --help)")
    options = _options(parsed, environment)
    output: Output
    if "--json" in formats:
        output = json_output(environment)
    else:
        output = _Listing(environment, *formats, folders=options.folders, quiet=parsed.has("--quiet"))
    return perform(output, lambda: _find(parsed, options, output)).exit


def _find(words: Words, options: SimilarOptions, reporter: Output) -> SimilarReport:
    from rdc.library.similar import similar

    given = words.last("--to")
    if given is not None and os.path.isdir(given.value):
        raise UsageError(f"--to={given.value}: a file is expected, not a directory")
    with read_choice(words).store() as catalog:
        return similar(words.operands, options, catalog=catalog, reporter=reporter)


class _Listing(TerminalOutput):
    """Prints all results at the end: as text, as names for programs, or as a table."""

    def __init__(self, environment: Environment, form: str = "", *, folders: bool, quiet: bool) -> None:
        """`form`: "--null", "--csv" or "". `quiet`: without a summary."""
        super().__init__(environment.data, environment.talk, environment.progress(quiet=quiet))
        self._environment = environment
        self._form = form
        self._folders = folders
        self._summarised = not quiet

    def finish(self, report: SimilarReport) -> None:
        self.close()
        if self._form == "--null":
            for names in _names(report):
                self._environment.binary(names)
        elif self._form == "--csv":
            for rows in _tables(report, folders=self._folders):
                self._data(rows)
        else:
            for text in _texts(report):
                self._data(text)
        if report.summary is not None and self._summarised:
            from rdc.report.listings import similar_summary

            # The listing precedes the summary if both go to one terminal.
            self._environment.flush()
            self._talk(similar_summary(report.summary) + "\n")


def _texts(report: SimilarReport) -> Iterator[str]:
    """The lines of all matches, then groups and pairs of folders with an empty line between two."""
    from rdc.report.listings import files_text, folders_text

    yield files_text(report.matches)
    groups = (files_text(group.files) for group in report.groups)
    for number, text in enumerate(chain(groups, map(folders_text, report.folders))):
        yield ("\n" if number else "") + text


def _names(report: SimilarReport) -> Iterator[bytes]:
    """Names ended by NUL. Groups and pairs of folders end with one more, matches do not."""
    from rdc.report.text import null_names

    yield b"".join(file.path + b"\0" for file in report.matches)
    for group in report.groups:
        yield null_names(name for file in group.files for name in (file.path, *file.copies))
    for pair in report.folders:
        yield null_names((pair.first, pair.second))


def _tables(report: SimilarReport, *, folders: bool) -> Iterator[str]:
    """The rows of a table below its heads. Each match is a group of its own."""
    from rdc.model.similar import SimilarGroup
    from rdc.report.listings import FILES_HEAD, FOLDERS_HEAD, file_rows, folder_rows

    yield FOLDERS_HEAD if folders else FILES_HEAD
    yield from map(folder_rows, report.folders)
    matches = (SimilarGroup((file,)) for file in report.matches)
    for number, group in enumerate(chain(matches, report.groups), 1):
        yield "".join(file_rows(number, group))


def _options(words: Words, environment: Environment) -> SimilarOptions:
    least, most = words.last("--min-size"), words.last("--max-size")
    to = words.last("--to")
    return SimilarOptions(
        rules=read_rules(words, lambda name: read_rule_file(name, environment)),
        min_size=SimilarOptions().min_size if least is None else read_size("--min-size", least.value),
        max_size=None if most is None else read_size("--max-size", most.value),
        one_file_system=words.has("--one-file-system"),
        threshold=_file_threshold(words),
        to=None if to is None else to.value,
        top=_count(words),
        folders=words.has("--folders"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
    )


def _file_threshold(words: Words) -> float:
    given = words.last("--threshold")
    if given is None:
        return 0.05 if words.has("--to") else 0.5
    import re

    if not re.fullmatch(r"0?\.\d{1,6}|[01](\.0*)?", given.value) or not 0.01 <= float(given.value) <= 1:
        raise UsageError(f"--threshold={given.value}: a part from 0.01 to 1 is expected, such as 0.8")
    return float(given.value)


def _count(words: Words) -> int:
    given = words.last("--top")
    if given is None:
        return TOP
    if not (
        given.value.isascii() and given.value.isdigit() and 0 < len(given.value) <= 9 and int(given.value)
    ):
        raise UsageError(f"--top={given.value}: a number of files, 1 or more, is expected")
    return int(given.value)
