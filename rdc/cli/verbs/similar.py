"""`rdc similar PATH...`: finds similar files that are not identical, and overlapping directories."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.catalog_options import CATALOG_GROUP, read_choice
from rdc.cli.options.document_options import (
    DOCUMENT_GROUP,
    FORMER_DOCUMENT_OPTIONS,
    refuse_document_options,
)
from rdc.cli.options.filter_options import FILTER_GROUP, read_rule_file, read_rules
from rdc.cli.options.resource_options import DEPTH, MAX_RATE, read_depth, read_max_rate
from rdc.cli.options.table import Option, OptionGroup, Words, options_help, parse_words, read_size
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.model.similar import SimilarOptions
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarReport
    from rdc.progress import Reporter

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


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc similar` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, FORMER_DOCUMENT_OPTIONS, command="rdc similar")
    if parsed.has("--help"):
        environment.show_help(help_text())
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
    job = _Job(parsed, environment)
    writer: _Writer
    if "--json" in formats:
        writer = _JsonWriter(environment)
    elif "--csv" in formats:
        writer = _CsvWriter(environment)
    elif "--null" in formats:
        writer = _NullWriter(environment)
    else:
        writer = _TextWriter(environment)
    return writer.write(job)


class _Job:
    """The search that a command line asks for."""

    def __init__(self, words: Words, environment: Environment) -> None:
        self.words = words
        self.options = _options(words, environment)
        self.terminal = Trouble(environment.talk, environment.progress(quiet=words.has("--quiet")))
        self.reporter: Reporter = self.terminal

    @property
    def quiet(self) -> bool:
        return self.words.has("--quiet")

    def run(self) -> SimilarReport:
        from rdc.library.similar import similar

        given = self.words.last("--to")
        if given is not None and os.path.isdir(given.value):
            raise UsageError(f"--to={given.value}: a file is expected, not a directory")
        try:
            with read_choice(self.words).store() as catalog:
                return similar(self.words.operands, self.options, catalog=catalog, reporter=self.reporter)
        finally:
            self.terminal.close()


class _Writer(ABC):
    """Writes the results in one form of output."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @abstractmethod
    def write(self, job: _Job) -> ExitCode:
        """Runs the search, writes its results and returns the exit code."""


class _ListingWriter(_Writer):
    """A form that writes all results at the end."""

    def write(self, job: _Job) -> ExitCode:
        from rdc.report.similar_listing import summary_text

        found = job.run()
        if found.summary is None:
            self.matches(found.matches)
            return found.exit
        if job.options.folders:
            self.folders(found.folders)
        else:
            self.groups(found.groups)
        if not job.quiet:
            self.environment.flush()
            self.environment.talk(summary_text(found.summary) + "\n")
        return found.exit

    @abstractmethod
    def matches(self, files: Sequence[SimilarFile]) -> None:
        """Writes the files that resemble one file, best first."""

    @abstractmethod
    def groups(self, found: Iterable[SimilarGroup]) -> None:
        """Writes groups of similar files."""

    @abstractmethod
    def folders(self, pairs: Sequence[SimilarFolders]) -> None:
        """Writes pairs of overlapping directories, most overlap first."""


class _TextWriter(_ListingWriter):
    def matches(self, files: Sequence[SimilarFile]) -> None:
        from rdc.report.similar_listing import files_text

        self.environment.data(files_text(files))

    def groups(self, found: Iterable[SimilarGroup]) -> None:
        from rdc.report.similar_listing import files_text

        self._blocks(files_text(group.files) for group in found)

    def folders(self, pairs: Sequence[SimilarFolders]) -> None:
        from rdc.report.similar_listing import folders_text

        self._blocks(folders_text(pair) for pair in pairs)

    def _blocks(self, texts: Iterator[str]) -> None:
        for number, text in enumerate(texts):
            self.environment.data(("\n" if number else "") + text)


class _NullWriter(_ListingWriter):
    def matches(self, files: Sequence[SimilarFile]) -> None:
        self.environment.binary(b"".join(file.path + b"\0" for file in files))

    def groups(self, found: Iterable[SimilarGroup]) -> None:
        from rdc.report.names import null_names

        for group in found:
            self.environment.binary(
                null_names(name for file in group.files for name in (file.path, *file.copies))
            )

    def folders(self, pairs: Sequence[SimilarFolders]) -> None:
        from rdc.report.names import null_names

        for pair in pairs:
            self.environment.binary(null_names((pair.first, pair.second)))


class _CsvWriter(_ListingWriter):
    def matches(self, files: Sequence[SimilarFile]) -> None:
        from rdc.model.similar import SimilarGroup
        from rdc.report.similar_listing import FILES_HEAD, file_rows

        rows = (
            row for number, file in enumerate(files, 1) for row in file_rows(number, SimilarGroup((file,)))
        )
        self.environment.data(FILES_HEAD + "".join(rows))

    def groups(self, found: Iterable[SimilarGroup]) -> None:
        from rdc.report.similar_listing import FILES_HEAD, file_rows

        self.environment.data(FILES_HEAD)
        for number, group in enumerate(found, 1):
            self.environment.data("".join(file_rows(number, group)))

    def folders(self, pairs: Sequence[SimilarFolders]) -> None:
        from rdc.report.similar_listing import FOLDERS_HEAD, folder_rows

        self.environment.data(FOLDERS_HEAD + "".join(map(folder_rows, pairs)))


class _JsonWriter(_Writer):
    def write(self, job: _Job) -> ExitCode:
        from rdc.report.similar_json import SimilarJson

        events = SimilarJson(self.environment.data, self.environment.flush, self.environment.clock)
        job.reporter = events
        events.start()
        try:
            found = job.run()
        except RdcError as error:
            events.fail(error)
            raise
        for file in found.matches:
            events.match(file)
        if found.summary is None:
            events.finish_matches(len(found.matches), found.exit)
            return found.exit
        for pair in found.folders:
            events.folders(pair)
        for group in found.groups:
            events.group(group)
        events.finish(found.summary, found.exit)
        return found.exit


def _options(words: Words, environment: Environment) -> SimilarOptions:
    least, most = words.last("--min-size"), words.last("--max-size")
    to = words.last("--to")
    return SimilarOptions(
        rules=read_rules(words, lambda name: read_rule_file(name, environment)),
        min_size=SimilarOptions().min_size if least is None else read_size("--min-size", least.value),
        max_size=None if most is None else read_size("--max-size", most.value),
        one_file_system=words.has("--one-file-system"),
        threshold=_threshold(words),
        to=None if to is None else to.value,
        top=_count(words),
        folders=words.has("--folders"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
    )


def _threshold(words: Words) -> float:
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
