"""`rdc similar PATH...`: finds similar files that are not identical, and overlapping directories."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import CATALOG_GROUP, read_choice
from rdc.cli.options.shared_options import (
    CHOOSE,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    read_depth,
    read_max_rate,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, json_output, list_output, perform, short_help
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

SUMMARY = "find nearly identical files, and folders that overlap"

TOP = 20
"""The default number of files that --to shows."""

OPTIONS = (
    OptionGroup(
        "Search",
        (
            Option(
                ("--threshold",),
                "least resemblance, 0.01 to 1 (default: 0.5; with --to: 0.05; with --text: 0.8)",
                "PART",
                common=True,
            ),
            Option(("--to",), "rank files by their resemblance to FILE", "FILE", common=True),
            Option(("--top",), f"with --to: list at most N files (default: {TOP})", "N", common=True),
            Option(("--folders",), "list pairs of directories that overlap, not files", common=True),
        ),
    ),
    DOCUMENT_GROUP,
    OptionGroup(
        "Size and place",
        stage=CHOOSE,
        options=(
            Option(("--min-size",), "skip files smaller than SIZE (default: 512 bytes)", "SIZE", common=True),
            Option(("--max-size",), "skip files larger than SIZE", "SIZE"),
            Option(("-x", "--one-file-system"), "stay on the file system of each PATH", common=True),
            DEPTH,
            MAX_RATE,
        ),
    ),
    FILTER_GROUP,
    OptionGroup(
        "Show",
        (
            Option(
                ("-0", "--null"),
                "print unescaped names, a NUL after each and another after each group",
                common=True,
            ),
            Option(("--csv",), "print a CSV table with one row per file or pair of folders", common=True),
            Option(("--json",), "print one JSON event per line", common=True),
            Option(("-q", "--quiet"), "show no progress and no summary"),
            HELP,
        ),
    ),
    CATALOG_GROUP,
)

_INTRODUCTION = """\
Usage: rdc similar [OPTIONS] PATH...

Examples:
  rdc similar documents/                      groups of similar files
  rdc similar --to=report.txt documents/      files similar to report.txt, most similar first
  rdc similar --folders backup/ old-backup/   directories with much content in common
  rdc similar --text --write-kept=kept.jsonl corpus/*.jsonl.zst
                                              near-duplicates among documents

The number on each line is the resemblance of the file to its most similar file: the bytes that both contain,
divided by the bytes that either contains. Samples find candidates, which are then compared chunk by chunk.
Identical files are listed once, the others after an equals sign; to find them, use rdc dupes.
"""

_ABOUT_TEXTS = """
With --text, documents are compared by shingles: five words in a row, ignoring case and punctuation. A
document is a plain file, or a row of a .jsonl, .ndjson, .json or .parquet file; the first three may be
compressed, as .jsonl.gz or .json.zst. The first number is the exact share of common shingles, the second the
estimate from 128 samples.
"""

_FORMATS = ("--null", "--csv", "--json")


help_text = HelpText(_INTRODUCTION + _ABOUT_TEXTS, OPTIONS, short=short_help("similar", _INTRODUCTION))


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc similar` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, FORMER_DOCUMENT_OPTIONS, command="rdc similar")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if not parsed.operands:
        raise parsed.missing("rdc similar needs a file or directory", "rdc similar")
    if parsed.has("--text"):
        import shlex

        return run_text(parsed, environment, shlex.join(["rdc", "similar", *words]))
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
        output = list_output(environment, results, similar_summary, quiet=parsed.has("--quiet"))
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
    if not re.fullmatch(r"0?\.\d{1,6}|[01](\.0*)?", given.value) or not 0.01 <= float(given.value) <= 1:
        raise UsageError(f"--threshold={given.value}: a part from 0.01 to 1 is expected, such as 0.8")
    return float(given.value)
