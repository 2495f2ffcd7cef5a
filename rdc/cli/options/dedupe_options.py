"""The options of `rdc dedupe`: their table, and the request they are read into."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rdc.cli.options.catalog_options import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.filter_options import FILTER_GROUP, read_rules
from rdc.cli.options.table import Option, OptionGroup, Words, parse_words, read_size
from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.selection import DirectoryRules, FilterRule

__all__ = ["DEDUPE_OPTIONS", "DedupeRequest", "parse_dedupe", "read_dedupe"]

DEDUPE_OPTIONS = (
    OptionGroup(
        "What is done",
        (
            Option(("--apply",), "act; without it only show what would be done, and what it would win"),
            Option(("-n", "--dry-run"), "do not act, --apply or --undo or not"),
            Option(("--hardlink",), "make names of one file of them (default: let them share blocks)"),
            Option(("--chunks",), "share equal parts of files that differ, too; reads every file"),
            Option(("--keep-in",), "never change what is below DIR, only link to it or share with it", "DIR"),
            Option(("--from",), "take groups from the JSON of rdc dupes instead of searching", "REPORT"),
            Option(
                ("--undo",),
                "make links separate files again, or bring back what rdc dupes removed",
                "JOURNAL",
            ),
        ),
    ),
    OptionGroup(
        "How much",
        (
            Option(("--max-files",), "change at most N files, then exit with 25", "N"),
            Option(("--max-bytes",), "change files of at most SIZE (500M, 2G), then exit with 25", "SIZE"),
            Option(("--min-size",), "leave files below SIZE alone (default: 1)", "SIZE"),
            Option(
                ("--journal",), "where hard links are written down (default: your state directory)", "FILE"
            ),
        ),
    ),
    FILTER_GROUP,
    CATALOG_GROUP,
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but errors"),
            Option(("-v", "--verbose"), "list each file of a dry run, not only sums by folder"),
            Option(("--progress",), "show progress, by lines where no bar can be drawn"),
            Option(("--json",), "one JSON event a line on stdout instead"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_NOT_WITH_UNDO = ("--hardlink", "--chunks", "--keep-in", "--from", "--min-size", "--journal")


@dataclass(frozen=True, slots=True)
class DedupeRequest:
    """The checked command line of `rdc dedupe`."""

    paths: tuple[bytes, ...]
    apply: bool
    hardlink: bool
    chunks: bool
    keep: tuple[bytes, ...]
    report: str | None
    """The file name of --from; '-' is stdin."""
    undo: bytes | None
    max_files: int | None
    max_bytes: int | None
    min_size: int
    journal: bytes | None
    rules: tuple[FilterRule | DirectoryRules, ...]
    catalog: CatalogChoice
    quiet: bool
    verbose: bool
    progress: bool
    json: bool


def parse_dedupe(words: Sequence[str]) -> Words:
    """Parse the words after `rdc dedupe`. Raises UsageError."""
    former = {"--keep": "this option is --keep-in=DIR now"}
    return parse_words(words, DEDUPE_OPTIONS, former, command="rdc dedupe")


def read_dedupe(parsed: Words, read_rule_file: Callable[[str], bytes]) -> DedupeRequest:
    """Read the request. Raises UsageError for a contradiction, before any file is opened."""
    # long because each combination of options that makes no sense is one test with its message
    undo = parsed.last("--undo")
    report = parsed.last("--from")
    journal = parsed.last("--journal")
    if undo is not None:
        for key in _NOT_WITH_UNDO:
            if parsed.has(key):
                raise UsageError(f"{key} makes no sense with --undo, which only reads the journal")
        if parsed.operands:
            raise UsageError(
                f"--undo takes no PATH: the journal says what it is about ({parsed.operands[0]})"
            )
    elif not parsed.operands:
        raise UsageError("rdc dedupe needs a PATH (see rdc dedupe --help)")
    if parsed.has("--chunks") and (parsed.has("--hardlink") or report is not None):
        other = "--hardlink" if parsed.has("--hardlink") else "--from"
        raise UsageError(f"--chunks makes no sense with {other}, which is about whole files")
    if journal is not None and not parsed.has("--hardlink"):
        raise UsageError("--journal is for hard links: add --hardlink")
    for given in (undo, report, journal):
        if given is not None and not given.value:
            raise UsageError(f"{given.key} needs a file: {given.key}=FILE")
    dry = parsed.has("-n", "--dry-run")
    return DedupeRequest(
        paths=tuple(_path(word) for word in parsed.operands),
        apply=(parsed.has("--apply") or undo is not None) and not dry,
        hardlink=parsed.has("--hardlink"),
        chunks=parsed.has("--chunks"),
        keep=tuple(_path(given.value) for given in parsed.given if given.key == "--keep-in"),
        report=None if report is None else report.value,
        undo=None if undo is None else _path(undo.value),
        max_files=_number(parsed, "--max-files"),
        max_bytes=_size(parsed, "--max-bytes"),
        min_size=_size(parsed, "--min-size") or 1,
        journal=None if journal is None else _path(journal.value),
        rules=read_rules(parsed, read_rule_file),
        catalog=read_choice(parsed),
        quiet=parsed.has("--quiet"),
        verbose=parsed.has("--verbose"),
        progress=parsed.has("--progress"),
        json=parsed.has("--json"),
    )


def _path(word: str) -> bytes:
    if not word:
        raise UsageError("a PATH is empty; for the current directory, write .")
    if "\0" in word:
        raise UsageError("a PATH cannot contain a NUL character")
    return os.fsencode(word)


def _number(parsed: Words, key: str) -> int | None:
    given = parsed.last(key)
    if given is None:
        return None
    if not (given.value.isascii() and given.value.isdigit() and len(given.value) <= 18):
        raise UsageError(f"{key}={given.value}: a number of files is expected")
    return int(given.value)


def _size(parsed: Words, key: str) -> int | None:
    given = parsed.last(key)
    return None if given is None else read_size(key, given.value)
