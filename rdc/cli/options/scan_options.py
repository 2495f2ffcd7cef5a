"""The options of `rdc scan`: their table, and the request they are read into."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable

from rdc.cli.options.catalog_options import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.filter_options import FILTER_GROUP, ReadRuleFile, read_rules
from rdc.cli.options.resource_options import (
    CLUSTER,
    DEPTH,
    MAX_RATE,
    OVERWRITE,
    SLICE,
    SLICES,
    read_depth,
    read_max_rate,
    read_slicing,
)
from rdc.cli.options.table import Option, OptionGroup, Words, parse_words, read_size
from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.lean.typed import TypeVar
from rdc.limits.searches import SCAN_MEMORY_LEAST
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.scan import DEFAULT_MEMORY, FIXED_LEVELS, SHIFT_MOST, ScanOptions
from rdc.report.scan.tables import TABLES

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cluster.engines import EngineUrl

T = TypeVar("T")
D = TypeVar("D")

OUTPUT_GROUP = OptionGroup(
    "What is shown",
    (
        Option(("--json",), "the whole report as one JSON object on stdout"),
        Option(("--csv",), f"one table as CSV on stdout: {', '.join(TABLES)}", "TABLE"),
        Option(("--html",), "a page with pictures, complete in one file (needs plotly)", "FILE"),
        Option(("--parquet",), "all tables as Parquet files in DIR (needs pyarrow)", "DIR"),
        OVERWRITE,
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
            DEPTH,
            MAX_RATE,
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
    OptionGroup("A cluster", (CLUSTER, SLICES)),
    OptionGroup(
        "Parts",
        (
            Option(("-o", "--output"), "write a part for rdc merge as well, ending in .rdcscan", "FILE"),
            SLICE,
            Option(
                ("--shift",),
                "count one chunk in 2^S from the start, so that parts are small (default: 0)",
                "S",
            ),
        ),
    ),
    OUTPUT_GROUP,
)


@dataclass(frozen=True, slots=True)
class Output:
    """The destinations of the report. With none named, the terminal form is printed."""

    json: bool = False
    csv: str | None = None
    parquet: str | None = None
    html: str | None = None
    quiet: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The checked command line of `rdc scan`."""

    paths: tuple[str, ...]
    options: ScanOptions
    part: str | None
    """The part to write; with `cluster`, the directory of parts."""
    output: Output
    catalog: CatalogChoice
    cluster: EngineUrl | None = None
    slices: int | None = None
    """Number of slices on the cluster; None for a suitable one."""


def parse_scan(words: list[str]) -> Words:
    """Parses the words after `rdc scan`. Raises UsageError."""
    return parse_words(words, SCAN_OPTIONS, {}, command="rdc scan")


def read_scan(words: Words, read_rule_file: ReadRuleFile) -> ScanRequest:
    """Reads the request. Raises UsageError for a contradiction, RdcError for an unreadable rule file."""
    if not words.operands:
        raise UsageError("rdc scan needs a directory or a file (see rdc scan --help)")
    levels = tuple(dict.fromkeys(given.value for given in words.given if given.key == "--level"))
    for level in levels:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level={level}: unknown; {' and '.join(FIXED_LEVELS)} can be added")
    part = read_part(words)
    slicing = read_slicing(words, part, "rdcscan")
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
            shift=_last(words, "--shift", _shift, 0),
            slice=slicing.slice,
            depth=read_depth(words),
            max_rate=read_max_rate(words),
        ),
        part=part,
        output=read_output(words),
        catalog=read_choice(words),
        cluster=slicing.cluster,
        slices=slicing.slices,
    )


def read_output(words: Words) -> Output:
    """Reads where the report goes. Raises UsageError."""
    # long because each combination of options that makes no sense is one test with its message
    csv, parquet, page = words.last("--csv"), words.last("--parquet"), words.last("--html")
    if csv is not None and csv.value not in TABLES:
        raise UsageError(f"--csv={csv.value}: there are {', '.join(TABLES)}")
    if csv is not None and words.has("--json"):
        raise UsageError("--csv and --json both go to stdout; choose one")
    if page is not None and not page.value:
        raise UsageError("--html needs a file, such as: --html=scan.html")
    if parquet is not None and not parquet.value:
        raise UsageError("--parquet needs a directory, such as: --parquet=report")
    # A scan can take hours, so this fails before it.
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
        overwrite=words.has("--overwrite"),
    )


def read_memory(words: Words) -> int:
    """Returns the bytes of --memory. Raises UsageError."""
    return _last(words, "--memory", _memory, DEFAULT_MEMORY)


def _last(words: Words, key: str, read: Callable[[str], T], default: D) -> T | D:
    given = words.last(key)
    return default if given is None else read(given.value)


def _memory(text: str) -> int:
    size = read_size("--memory", text)
    if size < SCAN_MEMORY_LEAST:
        raise UsageError(
            f"--memory={text}: {SCAN_MEMORY_LEAST >> 10} KiB at least; bounds would mean nothing"
        )
    if size == SIZE_LIMIT:
        raise UsageError(f"--memory={text}: no machine has as much; a size such as 500M or 2G is expected")
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


def _shift(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= SHIFT_MOST):
        raise UsageError(f"--shift={text}: a whole number from 0 to {SHIFT_MOST} is expected")
    return int(text)


def read_part(words: Words) -> str | None:
    """Returns the file of --output, or None if it is absent. Raises UsageError."""
    given = words.last("--output")
    if given is None:
        return None
    if not given.value:
        raise UsageError("-o needs a file, such as: -o part.rdcscan")
    return given.value
