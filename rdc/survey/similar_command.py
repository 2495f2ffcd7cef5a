"""`rdc similar PATH...`: finds similar files that are not identical, and overlapping directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import (
    CATALOG_GROUP,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    read_choice,
    read_depth,
    read_max_rate,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, Listing, json_output, perform
from rdc.documents.command import (
    DOCUMENT_GROUP,
    FORMER_DOCUMENT_OPTIONS,
    refuse_document_options,
    run_text,
)
from rdc.errors import ExitCode, UsageError
from rdc.model.options import Option
from rdc.model.similar import SimilarOptions, SimilarReport
from rdc.report.output import Output

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
    form = parsed.only(_FORMATS, "rdc similar")
    parsed.only(("--to", "--folders"), "rdc similar")
    options = _options(parsed, environment)
    output: Output
    if form == "--json":
        output = json_output(environment)
    else:
        from rdc.survey.similar_report import listed_similar, similar_summary

        results = partial(listed_similar, form=form, folders=options.folders)
        output = Listing(environment, results, similar_summary, quiet=parsed.has("--quiet"))
    return perform(output, lambda: _find(parsed, options, output)).exit


def _find(words: Words, options: SimilarOptions, reporter: Output) -> SimilarReport:
    from rdc.library.similar import similar

    to = words.value("--to")
    if to is not None and os.path.isdir(to):
        raise UsageError(f"--to={to}: a file is expected, not a directory")
    with read_choice(words).store() as catalog:
        return similar(words.operands, options, catalog=catalog, reporter=reporter)


def _options(words: Words, environment: Environment) -> SimilarOptions:
    least, files = words.size("--min-size"), "a number of files, 1 or more, is expected"
    return SimilarOptions(
        rules=read_rules(words, lambda name: read_rule_file(name, environment)),
        min_size=SimilarOptions().min_size if least is None else least,
        max_size=words.size("--max-size"),
        one_file_system=words.has("--one-file-system"),
        threshold=_file_threshold(words),
        to=words.value("--to"),
        top=words.number("--top", TOP, files, least=1, digits=9),
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
