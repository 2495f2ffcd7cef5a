"""`rdc similar PATH...`: finds similar files that are not identical, and overlapping directories."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import chain

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words, read_size
from rdc.cli.options.file_options import CATALOG_GROUP, FILTER_GROUP, read_choice, read_rule_file, read_rules
from rdc.cli.options.resource_options import (
    CLUSTER,
    DEPTH,
    MAX_RATE,
    OVERWRITE,
    SLICE,
    SLICES,
    Slicing,
    read_depth,
    read_max_rate,
    read_slicing,
)
from rdc.cli.verb import HelpText, json_output, keep_freed_memory, perform, reporting, stop_requests
from rdc.errors import ExitCode, UsageError
from rdc.files.own.output_file import Claims, OutputKind, claim_outputs, write_output
from rdc.files.own.output_file import Output as FileOutput
from rdc.lean.records import dataclass, replace
from rdc.model.options import Option
from rdc.model.similar import (
    FORMATS,
    SHINGLE_UNITS,
    DocumentOptions,
    DocumentReport,
    SimilarOptions,
    SimilarReport,
)
from rdc.report.output import Output, TerminalOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.model.selection import DirectoryRules, FilterRule
    from rdc.progress import Reporter


# The options of `rdc similar --text` and of a merge of its parts: their table, and what they become.

_KEEP = Option(("--write-kept",), "list the documents that a training set keeps, as JSON lines", "FILE")
_AGAINST = Option(("--against",), "list what resembles a document of an older corpus, a part", "PART")

FORMER_DOCUMENT_OPTIONS = {"--keep": "this option is --write-kept=FILE now"}
"""Options that had another name, and what a message says of them."""

DOCUMENT_GROUP = OptionGroup(
    "Documents (with --text)",
    (
        Option(("--text",), "compare texts by their words: plain files, rows of JSONL and of Parquet"),
        Option(("--field",), "the field or column that holds the text (default: text)", "NAME"),
        Option(
            ("--format",),
            "auto (default), jsonl: every file has JSON lines, or text: every file is one",
            "FORMAT",
        ),
        Option(("--shingle",), "words, or chars for scripts without spaces (default: words)", "UNIT"),
        _KEEP,
        _AGAINST,
        Option(("--stage",), "keep in DIR what was read, so that a killed run goes on there", "DIR"),
        Option(("-o", "--output"), "write a part for rdc merge as well, ending in .rdcdocs", "FILE"),
        Option(("--html",), "a page with pictures, complete in one file", "FILE"),
        OVERWRITE,
        SLICE,
        CLUSTER,
        SLICES,
    ),
)

MERGED_DOCUMENT_GROUP = OptionGroup(
    "Parts of documents",
    (
        Option(("--threshold",), "resemblance from 0.1 to 1 (default: 0.8)", "PART"),
        _KEEP,
        _AGAINST,
    ),
)


@dataclass(frozen=True, slots=True)
class DocumentOutput:
    """Where the results go. Without `json` they are printed for people."""

    json: bool
    quiet: bool
    keep: str | None
    part: str | None
    html: str | None
    overwrite: bool
    merged: bool = False
    """True for the output of a merge: an existing part may then be one that is merged."""

    @property
    def list_output(self) -> FileOutput | None:
        """The list of documents to keep."""
        from rdc.report.listings import DOCUMENT_LIST

        return self._of(self.keep, DOCUMENT_LIST)

    @property
    def part_output(self) -> FileOutput | None:
        """The part for rdc merge."""
        from rdc.documents.parts.part_file import DOCUMENT_PART, MERGED_DOCUMENTS

        return self._of(self.part, MERGED_DOCUMENTS if self.merged else DOCUMENT_PART)

    @property
    def html_output(self) -> FileOutput | None:
        """The page."""
        from rdc.report.listings import DOCUMENTS_PAGE

        return self._of(self.html, DOCUMENTS_PAGE)

    def _of(self, path: str | None, kind: OutputKind) -> FileOutput | None:
        from rdc.files.own.output_file import Output as FileOutput

        return None if path is None else FileOutput(os.fsencode(path), kind, self.overwrite)


def read_document_options(
    words: Words, rules: tuple[FilterRule | DirectoryRules, ...] = ()
) -> DocumentOptions:
    """Reads what is searched for, and how. Raises UsageError."""
    shingle = _value(words, "--shingle") or SHINGLE_UNITS[0]
    if shingle not in SHINGLE_UNITS:
        raise UsageError(f"--shingle={shingle}: {' or '.join(SHINGLE_UNITS)} is expected")
    format_ = _value(words, "--format") or FORMATS[0]
    if format_ not in FORMATS:
        raise UsageError(f"--format={format_}: {', '.join(FORMATS[:-1])} or {FORMATS[-1]} is expected")
    return DocumentOptions(
        rules=rules,
        one_file_system=words.has("--one-file-system"),
        field=_value(words, "--field") or "text",
        format=format_,
        shingle=shingle,
        threshold=_threshold(words),
        against=_value(words, "--against"),
        stage=_value(words, "--stage"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
    )


def read_document_output(words: Words, *, merged: bool = False) -> DocumentOutput:
    """Read where the results go. `merged`: those of a merge. Raises UsageError for an empty name."""
    return DocumentOutput(
        words.has("--json"),
        words.has("--quiet"),
        _value(words, "--write-kept"),
        _value(words, "--output"),
        _value(words, "--html"),
        words.has("--overwrite"),
        merged,
    )


def refuse_document_options(words: Words, group: OptionGroup, why: str) -> None:
    """Raises UsageError if an option of `group` is given. `why` completes `--write-kept: `."""
    for option in group.options:
        if words.has(option.key):
            raise UsageError(f"{option.key}: {why}")


def refuse_beside_slices(words: Words, *, cluster: bool) -> None:
    """Raises UsageError for an option that means nothing beside --slice, or `cluster` beside --cluster."""
    refused = (
        ("--stage",)
        if cluster
        else ("--stage", "--write-kept", "--against", "--html", "--threshold", "--json")
    )
    for key in refused:
        if words.has(key):
            beside = "--cluster" if cluster else "--slice"
            why = "parts that are there are not made again" if key == "--stage" else "give it to rdc merge"
            raise UsageError(f"{key} and {beside} exclude each other; {why}")


def _value(words: Words, key: str) -> str | None:
    given = words.last(key)
    if given is not None and not given.value:
        raise UsageError(f"{key} needs a value (see rdc similar --help)")
    return None if given is None else given.value


def _threshold(words: Words) -> float:
    given = words.last("--threshold")
    if given is None:
        return DocumentOptions().threshold
    if not re.fullmatch(r"0?\.\d{1,6}|1(\.0*)?", given.value, re.ASCII) or float(given.value) < 0.1:
        raise UsageError(f"--threshold={given.value}: of documents, a part from 0.1 to 1 is expected")
    return float(given.value)


# `rdc similar --text PATH...`: finds near-duplicate documents. `rdc merge` prints them the same way.

_OTHERS = (
    "--to",
    "--top",
    "--folders",
    "--min-size",
    "--max-size",
    "--null",
    "--csv",
)
"""Options of the search for similar files that mean nothing for documents. Those of the catalog may come from
the environment; nothing is kept there."""


def run_text(words: Words, environment: Environment) -> ExitCode:
    """Runs `rdc similar --text`. Raises RdcError, which the caller prints."""
    for key in _OTHERS:
        if words.has(key):
            raise UsageError(f"{key} and --text exclude each other (see rdc similar --help)")
    rule_files: list[bytes] = []

    def read_file(name: str) -> bytes:
        rule_files.append(os.fsencode(name))
        return read_rule_file(name, environment)

    options = read_document_options(words, read_rules(words, read_file))
    output = read_document_output(words)
    slicing = read_slicing(words, output.part, "rdcdocs")
    if slicing.slice is not None:
        refuse_beside_slices(words, cluster=False)
        claim_results(output).check_named(rule_files)
        return _write_slice(words, options, slicing, output, environment)
    if slicing.cluster is not None:
        refuse_beside_slices(words, cluster=True)
        claims = claim_results(replace(output, part=None))
        claims.check_named(rule_files)
        from rdc.files.objects.object_store import is_url

        claims.check_below(path for path in map(os.fsencode, words.operands) if not is_url(path))
        return _on_cluster(words, options, slicing, output, environment)
    from rdc.library.similar import search_claimed, stage_of

    claims = claim_results(output, stage_of(options))
    claims.check_named(rule_files)

    def search(reporter: Reporter) -> DocumentReport:
        given = [os.fsencode(path) for path in words.operands]
        return search_claimed(given, options, output.part_output, claims, reporter=reporter)

    return print_documents(search, output, environment)


def claim_results(output: DocumentOutput, filled: Sequence[bytes] = ()) -> Claims:
    """Look at the places of all requested files before anything is read. `filled`: directories that the
    search fills. Raises RdcError if a result cannot or may not be written."""
    wanted = (output.list_output, output.part_output, output.html_output)
    return claim_outputs([one for one in wanted if one is not None], filled)


def _write_slice(
    words: Words, options: DocumentOptions, slicing: Slicing, output: DocumentOutput, environment: Environment
) -> ExitCode:
    """Writes the part of one slice, and says how much it is."""
    from rdc.library.similar import document_slice
    from rdc.report.listings import slice_text

    assert slicing.slice is not None  # noqa: S101 - the caller asked
    assert output.part is not None  # noqa: S101 - read_slicing refuses it
    _keep_freed_memory()
    terminal = _DocumentListing(environment, quiet=output.quiet)
    with reporting(terminal):
        found = document_slice(
            words.operands,
            slicing.slice,
            output.part,
            options,
            overwrite=output.overwrite,
            reporter=terminal,
        )
    if not output.quiet:
        environment.talk(slice_text(found, slicing.slice) + "\n")
    return found.exit


def _on_cluster(
    words: Words, options: DocumentOptions, slicing: Slicing, output: DocumentOutput, environment: Environment
) -> ExitCode:
    from functools import partial

    from rdc.cluster.engines import parts_on_engine
    from rdc.library.similar import document_parts, merge_documents

    cluster, out = slicing.cluster, output.part
    assert cluster is not None  # noqa: S101 - the caller asked
    assert out is not None  # noqa: S101 - read_slicing refuses it

    def search(reporter: Reporter) -> DocumentReport:
        with stop_requests() as stop:
            make = partial(document_parts, words.operands, options=options, reporter=reporter, stop=stop)
            parts = parts_on_engine(cluster, slicing.slices, out, b"rdcdocs", make)
            return merge_documents(parts, options, reporter=reporter, stop=stop)

    return print_documents(search, replace(output, part=None), environment)


def print_documents(
    search: Callable[[Reporter], DocumentReport], output: DocumentOutput, environment: Environment
) -> ExitCode:
    """Runs a search, writes its results in the forms that `output` asks for, and returns the exit code."""
    _keep_freed_memory()
    shown: Output = (
        json_output(environment) if output.json else _DocumentListing(environment, quiet=output.quiet)
    )
    report = perform(shown, lambda: search(shown))
    listed, page = output.list_output, output.html_output
    if listed is not None:
        from rdc.report.listings import keep_lines

        write_output(listed, keep_lines(report.kept))
    if page is not None:
        from rdc.report.listings import documents_page

        write_output(page, documents_page(report))
    return report.exit


def _keep_freed_memory() -> None:
    """Batches of texts take the memory of those before them."""
    from rdc.limits import BATCH_BYTES

    keep_freed_memory(mapped=2 * BATCH_BYTES, untrimmed=BATCH_BYTES)


class _DocumentListing(TerminalOutput):
    """Prints all groups and matches at the end."""

    def __init__(self, environment: Environment, *, quiet: bool) -> None:
        """`quiet`: without a summary."""
        super().__init__(environment.data, environment.talk, environment.progress(quiet=quiet))
        self._environment = environment
        self._summarised = not quiet

    def finish(self, report: DocumentReport) -> None:
        from rdc.report.listings import document_text, summary_text

        self.close()
        for number, group in enumerate(report.groups):
            self._data(("\n" if number else "") + "".join(map(document_text, group.documents)))
        for one in report.matches:
            self._data(document_text(one, like=True))
        if self._summarised:
            self._environment.flush()
            self._talk(summary_text(report.summary) + "\n")


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
    from rdc.report.output import null_names

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
