"""The options of `rdc similar --text` and of a merge of its parts: their table, and what they become."""

from __future__ import annotations

import os
import re

from rdc.cli.options.resource_options import CLUSTER, OVERWRITE, SLICE, SLICES, read_depth, read_max_rate
from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.similar import FORMATS, SHINGLE_UNITS, DocumentOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.own.output_file import Output as FileOutput
    from rdc.files.own.output_file import OutputKind
    from rdc.model.selection import DirectoryRules, FilterRule

__all__ = [
    "DOCUMENT_GROUP",
    "FORMER_DOCUMENT_OPTIONS",
    "MERGED_DOCUMENT_GROUP",
    "DocumentOutput",
    "read_document_options",
    "read_document_output",
    "refuse_beside_slices",
    "refuse_document_options",
]

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
    """Whether it is the output of a merge, so that an existing part may be one to merge."""

    @property
    def list_output(self) -> FileOutput | None:
        """The list of documents to keep."""
        from rdc.report.documents import DOCUMENT_LIST

        return self._of(self.keep, DOCUMENT_LIST)

    @property
    def part_output(self) -> FileOutput | None:
        """The part for rdc merge."""
        from rdc.documents.parts.part_file import DOCUMENT_PART, MERGED_DOCUMENTS

        return self._of(self.part, MERGED_DOCUMENTS if self.merged else DOCUMENT_PART)

    @property
    def html_output(self) -> FileOutput | None:
        """The page."""
        from rdc.report.documents import DOCUMENTS_PAGE

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
