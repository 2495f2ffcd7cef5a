"""`rdc merge PART...`: one report of several scans, or of several searches of documents."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.verb import HelpText
from rdc.documents.command import (
    FORMER_DOCUMENT_OPTIONS,
    MERGED_DOCUMENT_GROUP,
    print_documents,
    read_document_options,
    read_document_output,
    refuse_document_options,
)
from rdc.errors import ExitCode, UsageError, printable
from rdc.model.options import Option
from rdc.model.scan import DEFAULT_MEMORY, MergeOptions
from rdc.survey.scan_command import (
    OUTPUT_GROUP,
    claim_results,
    print_report,
    read_memory,
    read_output,
    read_part,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.similar import DocumentReport
    from rdc.progress import Reporter


SUMMARY = "combine several scans, or several corpora of documents, in one report"

OPTIONS = (
    OptionGroup(
        "Merging",
        (
            Option(
                ("--memory",), f"memory for the tables of chunks (default: {DEFAULT_MEMORY >> 20}m)", "SIZE"
            ),
            Option(("-o", "--output"), "also write the result as a part", "FILE"),
        ),
    ),
    MERGED_DOCUMENT_GROUP,
    OUTPUT_GROUP,
)

_INTRODUCTION = """\
Usage: rdc merge [OPTIONS] PART...

Examples:
  rdc merge a.rdcscan b.rdcscan         data that two machines share, and duplicates on each
  rdc merge --json *.rdcscan | jq .     for scripts
  rdc merge --write-kept=kept.jsonl *.rdcdocs
                                        near-duplicates among the documents of several machines

Counts and estimates equal those of one scan of everything. Tables larger than --memory are sampled. All parts
must have been made with the same options; a part that was not, or that is damaged, is rejected with a message
that names it.

All slices of one scan (rdc scan --slice) give exactly the report of that scan. A missing or repeated slice is
rejected.

Parts of documents come from rdc similar --text -o. Their report is exactly that of one search of all
documents. Parts of scans and parts of documents cannot be merged with each other.
"""

_SCANS_ONLY = ("--memory", "--csv", "--parquet", "--since", "--price")


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc merge` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, FORMER_DOCUMENT_OPTIONS, command="rdc merge")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if not parsed.operands:
        message = "rdc merge needs parts, which rdc scan -o and rdc similar --text -o write"
        raise parsed.missing(message, "rdc merge")
    if _are_documents(parsed.operands):
        return _merge_documents(parsed, environment, shlex.join(["rdc", "merge", *words]))
    refuse_document_options(parsed, MERGED_DOCUMENT_GROUP, "these are parts of scans; it is for documents")
    from rdc.survey.parts.sections import MERGED_SCAN

    memory, part, output = read_memory(parsed), read_part(parsed), read_output(parsed)
    claim_results(part, output, MERGED_SCAN).check_named(map(os.fsencode, parsed.operands))

    from rdc.library.scans import merge

    report = merge(
        parsed.operands, MergeOptions(memory), part=part, overwrite=output.overwrite, since=output.since
    )
    print_report(report, output, environment, shlex.join(["rdc", "merge", *words]))
    return report.exit


def _are_documents(names: Sequence[str]) -> bool:
    """Return True if the parts hold documents. Raises UsageError if some are and others are not."""
    from rdc.documents.parts.part_file import is_document_part

    kinds = [is_document_part(name) for name in names]
    if any(kinds) and not all(kinds):
        other, first = names[kinds.index(False)], names[kinds.index(True)]
        raise UsageError(
            f"{printable(other)}: no part of documents, and {printable(first)} is one; the kinds do not mix,"
            " merge each by itself"
        )
    return any(kinds)


def _merge_documents(words: Words, environment: Environment, command: str) -> ExitCode:
    for key in _SCANS_ONLY:
        if words.has(key):
            raise UsageError(f"{key}: these are parts of documents; it is for scans")
    options, output = read_document_options(words), read_document_output(words, merged=True)
    claims = output.claim()

    def search(reporter: Reporter) -> DocumentReport:
        from rdc.library.similar import merge_claimed

        return merge_claimed(words.operands, options, output.part, claims, reporter=reporter)

    return print_documents(search, output, environment, command)
