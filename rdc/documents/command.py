"""`rdc similar --text PATH...`: find near-duplicate documents. `rdc merge` prints them the same way."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial

from rdc.cli.environment import Environment, OptionGroup, Words
from rdc.cli.options.shared_options import (
    CLUSTER,
    OVERWRITE,
    SLICE,
    SLICES,
    OnCluster,
    OneSlice,
    RuleFiles,
    read_depth,
    read_max_rate,
    read_rules,
    read_slicing,
)
from rdc.cli.verb import json_output, keep_freed_memory, list_output, perform, reporting, stop_requests
from rdc.errors import ExitCode, UsageError
from rdc.lean.records import Record
from rdc.limits import BATCH_BYTES
from rdc.model.options import Option
from rdc.model.similar import FORMATS, LINKS, SHINGLE_UNITS, DocumentOptions, DocumentReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.own.output_file import Claims
    from rdc.files.own.output_file import Output as FileOutput
    from rdc.model.selection import DirectoryRules, FilterRule
    from rdc.progress import Reporter
    from rdc.report.output import Output


# The options of `rdc similar --text` and of a merge of its parts: their table, and what they become.

_KEEP = Option(
    ("--write-kept",), "list the documents to keep in a training set, as JSON lines", "FILE", common=True
)
_LINK = Option(
    ("--link",),
    "single: a group is connected by similar pairs (default); complete: each pair in it is similar",
    "RULE",
    values=LINKS,
)
_AGAINST = Option(("--against",), "list documents similar to one of an older corpus, given as a part", "PART")

FORMER_DOCUMENT_OPTIONS = {"--keep": "this option is --write-kept=FILE now"}
"""Options that had another name, and what a message says of them."""

DOCUMENT_GROUP = OptionGroup(
    "Documents (with --text)",
    (
        Option(
            ("--text",),
            "compare texts by their words: plain files, rows of JSONL and of Parquet",
            common=True,
        ),
        Option(("--field",), "the field or column with the text (default: text)", "NAME", common=True),
        Option(
            ("--format",),
            "auto (default), jsonl (every file has JSON lines) or text (every file is a document)",
            "FORMAT",
        ),
        Option(("--shingle",), "words, or chars for scripts without spaces (default: words)", "UNIT"),
        _LINK,
        _KEEP,
        Option(
            ("--clean",),
            "write the documents to keep to DIR, new or empty, in files like those of PATH",
            "DIR",
            common=True,
        ),
        Option(("--excerpts",), "show where each document differs from the most similar one", common=True),
        _AGAINST,
        Option(("--stage",), "keep what was read in DIR, so that an interrupted run can resume", "DIR"),
        Option(("-o", "--output"), "also write a part for rdc merge; FILE ends in .rdcdocs", "FILE"),
        Option(("--html",), "write a self-contained page with charts", "FILE"),
        OVERWRITE,
        SLICE,
        CLUSTER,
        SLICES,
    ),
)

MERGED_DOCUMENT_GROUP = OptionGroup(
    "Parts of documents",
    (
        Option(("--threshold",), "least resemblance, 0.1 to 1 (default: 0.8)", "PART"),
        _LINK,
        _KEEP,
        _AGAINST,
    ),
)


class DocumentOutput(Record):
    """The places of the results. Without `json` they are printed for people."""

    json: bool
    quiet: bool
    kept: FileOutput | None
    """The list of documents to keep."""
    part: FileOutput | None
    """The part for rdc merge."""
    page: FileOutput | None

    def claim(self, filled: Sequence[bytes] = ()) -> Claims:
        """Look at the places of all requested files before anything is read. `filled`: directories that the
        search fills. Raises RdcError if a result cannot or may not be written."""
        from rdc.files.own.output_file import claim_outputs

        wanted = (self.kept, self.part, self.page)
        return claim_outputs([one for one in wanted if one is not None], filled)


def read_document_options(
    words: Words, rules: tuple[FilterRule | DirectoryRules, ...] = ()
) -> DocumentOptions:
    """Return the documents to search for, and how. Raises UsageError."""
    link = _one_of(words, "--link", LINKS)
    if link != LINKS[0] and words.has("--against"):
        raise UsageError("--link=complete and --against exclude each other; --against makes no groups")
    if words.has("--excerpts") and words.has("--against"):
        raise UsageError("--excerpts and --against exclude each other; a part holds no texts")
    return DocumentOptions(
        rules=rules,
        one_file_system=words.has("--one-file-system"),
        field=_value(words, "--field") or "text",
        format=_one_of(words, "--format", FORMATS),
        shingle=_one_of(words, "--shingle", SHINGLE_UNITS),
        threshold=_threshold(words),
        link=link,
        against=_value(words, "--against"),
        excerpts=words.has("--excerpts"),
        clean=_value(words, "--clean"),
        stage=_value(words, "--stage"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
    )


def read_document_output(words: Words, *, merged: bool = False, parts: bool = False) -> DocumentOutput:
    """Read where the results go. Raises UsageError for an empty name.

    `merged`: those of a merge, whose part may replace one that is merged. `parts`: -o is no file of this
    process.
    """
    from rdc.documents.page_report import DOCUMENTS_PAGE
    from rdc.documents.parts.part_file import DOCUMENT_PART, MERGED_DOCUMENTS
    from rdc.documents.report import DOCUMENT_LIST
    from rdc.files.own.output_file import Output as FileOutput

    part_kind = MERGED_DOCUMENTS if merged else DOCUMENT_PART
    paths = [_value(words, key) for key in ("--write-kept", "--output", "--html")]
    kept, part, page = (
        None if path is None else FileOutput(os.fsencode(path), kind, words.has("--overwrite"))
        for path, kind in zip(paths, (DOCUMENT_LIST, part_kind, DOCUMENTS_PAGE), strict=True)
    )
    return DocumentOutput(words.has("--json"), words.has("--quiet"), kept, None if parts else part, page)


def refuse_document_options(words: Words, group: OptionGroup, why: str) -> None:
    """Raise UsageError if an option of `group` is given. `why` completes `--write-kept: `."""
    for option in group.options:
        if words.has(option.key):
            raise UsageError(f"{option.key}: {why}")


def refuse_beside_slices(words: Words, *, cluster: bool) -> None:
    """Raise UsageError for an option that means nothing beside --slice, or `cluster` beside --cluster."""
    beside = "--cluster" if cluster else "--slice"
    for key in ("--stage", "--clean", "--excerpts"):
        if words.has(key):
            why = "parts that are there are not made again"
            if key != "--stage":
                why = "the texts are read again where they were read; --write-kept lists what to keep"
            raise UsageError(f"{key} and {beside} exclude each other; {why}")
    for key in ("--write-kept", "--against", "--html", "--threshold", "--link", "--json"):
        if words.has(key) and not cluster:
            raise UsageError(f"{key} and --slice exclude each other; give it to rdc merge")


def _value(words: Words, key: str) -> str | None:
    given = words.last(key)
    if given is not None and not given.value:
        raise UsageError(f"{key} needs a value (see rdc similar --help)")
    return None if given is None else given.value


def _one_of(words: Words, key: str, values: Sequence[str]) -> str:
    """Return the value of an option, or the first one of `values`. Raises UsageError for another one."""
    value = _value(words, key) or values[0]
    if value not in values:
        raise UsageError(f"{key}={value}: {', '.join(values[:-1])} or {values[-1]} is expected")
    return value


def _threshold(words: Words) -> float:
    given = words.last("--threshold")
    if given is None:
        return DocumentOptions().threshold
    if not re.fullmatch(r"0?\.\d{1,6}|1(\.0*)?", given.value, re.ASCII) or float(given.value) < 0.1:
        raise UsageError(f"--threshold={given.value}: of documents, a part from 0.1 to 1 is expected")
    return float(given.value)


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


def run_text(words: Words, environment: Environment, command: str) -> ExitCode:
    """Run `rdc similar --text`. `command`: the command line. Raises RdcError, which the caller prints."""
    for key in _OTHERS:
        if words.has(key):
            raise UsageError(f"{key} and --text exclude each other (see rdc similar --help)")
    read_file = RuleFiles(environment, [])
    options = read_document_options(words, read_rules(words, read_file))
    output = read_document_output(words, parts=words.has("--cluster"))
    slicing = read_slicing(words, _value(words, "--output"), "rdcdocs")
    if slicing is not None:
        refuse_beside_slices(words, cluster=isinstance(slicing, OnCluster))
    if isinstance(slicing, OneSlice):
        output.claim().check_named(read_file.named)
        return _write_slice(words, options, slicing, output, environment)
    from rdc.library.similar import search_claimed, stage_of

    claims = output.claim(stage_of(options))
    claims.check_named(read_file.named)
    if isinstance(slicing, OnCluster):
        from rdc.files.objects.object_store import is_url

        claims.check_below(path for path in map(os.fsencode, words.operands) if not is_url(path))

    def search(reporter: Reporter) -> DocumentReport:
        if isinstance(slicing, OnCluster):
            return _search_on_cluster(words, options, slicing, reporter)
        given = [os.fsencode(path) for path in words.operands]
        return search_claimed(given, options, output.part, claims, reporter=reporter)

    return print_documents(search, output, environment, command)


def _write_slice(
    words: Words,
    options: DocumentOptions,
    slicing: OneSlice,
    output: DocumentOutput,
    environment: Environment,
) -> ExitCode:
    """Write the part of one slice, and say how much it is."""
    from rdc.documents.report import slice_text
    from rdc.library.similar import document_slice

    _keep_freed_memory()
    terminal = _listing(output, environment)
    with reporting(terminal):
        found = document_slice(
            words.operands,
            slicing.slice,
            slicing.part,
            options,
            overwrite=words.has("--overwrite"),
            reporter=terminal,
        )
    if not output.quiet:
        environment.talk(slice_text(found, slicing.slice) + "\n")
    return found.exit


def _search_on_cluster(
    words: Words, options: DocumentOptions, cluster: OnCluster, reporter: Reporter
) -> DocumentReport:
    from rdc.cluster.engines import parts_on_engine
    from rdc.library.similar import document_parts, merge_documents

    with stop_requests() as stop:
        make = partial(document_parts, words.operands, options=options, reporter=reporter, stop=stop)
        parts = parts_on_engine(cluster.engine, cluster.slices, cluster.directory, b"rdcdocs", make)
        return merge_documents(parts, options, reporter=reporter, stop=stop)


def print_documents(
    search: Callable[[Reporter], DocumentReport],
    output: DocumentOutput,
    environment: Environment,
    command: str,
) -> ExitCode:
    """Run a search, write its results in the forms that `output` asks for, and return the exit code.

    `command`: the command line, which the page shows.
    """
    _keep_freed_memory()
    shown = json_output(environment) if output.json else _listing(output, environment)
    report = perform(shown, lambda: search(shown))
    if output.kept is not None:
        from rdc.documents.report import keep_lines
        from rdc.files.own.output_file import write_output

        write_output(output.kept, keep_lines(report.kept))
    if output.page is not None:
        from rdc.documents.page_report import documents_page
        from rdc.files.own.output_file import write_output
        from rdc.report.html_page import PageOrigin

        write_output(output.page, documents_page(report, PageOrigin.here(command)))
    return report.exit


def _listing(output: DocumentOutput, environment: Environment) -> Output:
    from rdc.documents.report import documents_summary, listed_documents

    return list_output(environment, listed_documents, documents_summary, quiet=output.quiet)


def _keep_freed_memory() -> None:
    """Make batches of texts take the memory of those before them."""
    keep_freed_memory(mapped=2 * BATCH_BYTES, untrimmed=BATCH_BYTES)
