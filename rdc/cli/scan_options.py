"""The options of `rdc scan`: their table, and what a command line asks for."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

from rdc.cli.catalog_options import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.filter_options import FILTER_GROUP, ReadRuleFile, read_rules
from rdc.cli.options import Option, OptionGroup, Words, parse_words
from rdc.errors import UsageError
from rdc.limits import SCAN_MEMORY_LEAST, SIZE_LIMIT
from rdc.model.scan import DEFAULT_MEMORY, FIXED_LEVELS, ScanOptions
from rdc.records import dataclass
from rdc.report.scan_csv import TABLES
from rdc.typed import TypeVar

__all__ = [
    "OUTPUT_GROUP",
    "SCAN_OPTIONS",
    "Output",
    "ScanRequest",
    "parse_scan",
    "read_memory",
    "read_output",
    "read_part",
    "read_scan",
]

T = TypeVar("T")
D = TypeVar("D")

OUTPUT_GROUP = OptionGroup(
    "What is shown",
    (
        Option(("--json",), "the whole report as one JSON object on stdout"),
        Option(("--csv",), f"one table as CSV on stdout: {', '.join(TABLES)}", "TABLE"),
        Option(("--html",), "a page with pictures, complete in one file (needs plotly)", "FILE"),
        Option(("--parquet",), "all tables as Parquet files in DIR (needs pyarrow)", "DIR"),
        Option(("-q", "--quiet"), "show no progress"),
        Option(("--help",), "show this text"),
    ),
)

SCAN_OPTIONS = (
    FILTER_GROUP,
    OptionGroup(
        "What is measured",
        (
            Option(("-x", "--one-file-system"), "stay on the file system that each PATH is on"),
            Option(("--level",), f"also fixed blocks: {' or '.join(FIXED_LEVELS)} (may be repeated)", "NAME"),
            Option(("--no-zstd",), "do not estimate what compression saves after deduplication"),
        ),
    ),
    OptionGroup(
        "How much is read and held",
        (
            Option(
                ("--memory",),
                "for the tables of chunks: exact while they fit, sampled beyond"
                f" (default: {DEFAULT_MEMORY >> 20}m)",
                "SIZE",
            ),
            Option(("--time",), "stop after so long, such as 90s, 30m, 2h; files in random order", "TIME"),
            Option(("--sample",), "read about this part of the bytes, such as 0.1 or 10%", "RATE"),
            Option(("--seed",), "of the random order (default: 0)", "N"),
        ),
    ),
    CATALOG_GROUP,
    OptionGroup(
        "Parts",
        (Option(("-o", "--output"), "write a part for rdc merge as well, ending in .rdcscan", "FILE"),),
    ),
    OUTPUT_GROUP,
)


@dataclass(frozen=True, slots=True)
class Output:
    """Where the report goes; the terminal form where none is named."""

    json: bool = False
    csv: str | None = None
    parquet: str | None = None
    html: str | None = None
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class ScanRequest:
    paths: tuple[str, ...]
    options: ScanOptions
    part: str | None
    output: Output
    catalog: CatalogChoice


def parse_scan(words: list[str]) -> Words:
    """The words after `rdc scan`. Raises UsageError."""
    return parse_words(words, SCAN_OPTIONS, {}, command="rdc scan")


def read_scan(words: Words, read_rule_file: ReadRuleFile) -> ScanRequest:
    """What to do. Raises UsageError for what makes no sense, RdcError for a rule file that cannot be read."""
    if not words.operands:
        raise UsageError("rdc scan needs a directory or a file (see rdc scan --help)")
    levels = tuple(dict.fromkeys(given.value for given in words.given if given.key == "--level"))
    for level in levels:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level={level}: unknown; {' and '.join(FIXED_LEVELS)} can be added")
    return ScanRequest(
        paths=words.operands,
        options=ScanOptions(
            rules=read_rules(words, read_rule_file),
            one_file_system=words.has("--one-file-system"),
            fixed=levels,
            compress=not words.has("--no-zstd"),
            memory=read_memory(words),
            seconds=_last(words, "--time", _seconds, None),
            sample=_last(words, "--sample", _rate, None),
            seed=_last(words, "--seed", _seed, 0),
        ),
        part=read_part(words),
        output=read_output(words),
        catalog=read_choice(words),
    )


def read_output(words: Words) -> Output:
    """Raises UsageError."""
    csv, parquet, page = words.last("--csv"), words.last("--parquet"), words.last("--html")
    if csv is not None and csv.value not in TABLES:
        raise UsageError(f"--csv={csv.value}: there are {', '.join(TABLES)}")
    if csv is not None and words.has("--json"):
        raise UsageError("--csv and --json both go to stdout; choose one")
    if page is not None and not page.value:
        raise UsageError("--html needs a file, such as: --html=scan.html")
    if parquet is not None and not parquet.value:
        raise UsageError("--parquet needs a directory, such as: --parquet=report")
    # Before the hours that a scan may take, not after.
    if page is not None and importlib.util.find_spec("plotly") is None:
        raise UsageError("--html needs plotly (python3 -m pip install plotly); --json needs nothing")
    if parquet is not None and importlib.util.find_spec("pyarrow") is None:
        raise UsageError("--parquet needs pyarrow (python3 -m pip install pyarrow); --csv needs nothing")
    return Output(
        json=words.has("--json"),
        csv=None if csv is None else csv.value,
        parquet=None if parquet is None else parquet.value,
        html=None if page is None else page.value,
        quiet=words.has("--quiet"),
    )


def read_memory(words: Words) -> int:
    """Bytes of --memory. Raises UsageError."""
    return _last(words, "--memory", _memory, DEFAULT_MEMORY)


def _last(words: Words, key: str, read: Callable[[str], T], default: D) -> T | D:
    given = words.last(key)
    return default if given is None else read(given.value)


def _memory(text: str) -> int:
    """Bytes; k, m, g are powers of 1024."""
    found = re.fullmatch(r"(\d{1,15})([kmgt]?)(?:i?b)?", text, re.ASCII | re.IGNORECASE)
    if found is None:
        raise UsageError(f"--memory={text}: a size is expected, such as 256m or 2g")
    size = int(found[1]) << 10 * " kmgt".index(found[2].lower() or " ")
    if not SCAN_MEMORY_LEAST <= size <= SIZE_LIMIT:
        raise UsageError(
            f"--memory={text}: {SCAN_MEMORY_LEAST >> 10} KiB at least; bounds would mean nothing"
        )
    return size


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd]?)", text, re.ASCII)
    if found is None or not float(found[1]):
        raise UsageError(f"--time={text}: a time is expected, such as 90s, 30m or 2h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]]


def _rate(text: str) -> float:
    found = re.fullmatch(r"(\d{0,3}(?:\.\d{0,9})?)(%?)", text, re.ASCII)
    digits = found is not None and any(ch.isdigit() for ch in found[1])
    rate = float(found[1]) / (100 if found[2] else 1) if found is not None and digits else 0.0
    if not 0 < rate <= 1:
        raise UsageError(f"--sample={text}: a part of the whole is expected, such as 0.1 or 10%")
    return rate


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"--seed={text}: a whole number is expected")
    return int(text)


def read_part(words: Words) -> str | None:
    given = words.last("--output")
    if given is None:
        return None
    if not given.value:
        raise UsageError("-o needs a file, such as: -o part.rdcscan")
    return given.value
