"""`rdc scan PATH...`: measure what deduplication and compression would save, in one read."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words, read_size
from rdc.cli.options.own_places import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.shared_options import (
    CLUSTER,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    OVERWRITE,
    SLICE,
    SLICES,
    OnCluster,
    OneSlice,
    ReadRuleFile,
    RuleFiles,
    read_depth,
    read_max_rate,
    read_rules,
    read_slicing,
)
from rdc.cli.verb import HelpText, reporting, short_help, stop_requests
from rdc.errors import ExitCode, UsageError
from rdc.files.own.output_file import Claims, OutputKind, claim_outputs
from rdc.files.own.output_file import Output as OutputFile
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar
from rdc.limits import SCAN_MEMORY_LEAST, SIZE_LIMIT
from rdc.model.options import Option
from rdc.model.scan import DEFAULT_MEMORY, FIXED_LEVELS, SHIFT_MOST, MergeOptions, ScanOptions, ScanReport
from rdc.report.output import TerminalOutput
from rdc.survey.report.terminal import TABLES, parquet_outputs, print_scan, scan_csv, scan_json, write_parquet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Reporter, StopSignal


# The options of `rdc scan`: their table, and the request they are read into.

T = TypeVar("T")
D = TypeVar("D")

OUTPUT_GROUP = OptionGroup(
    "Show",
    (
        Option(("--json",), "print the whole report as one JSON object on stdout", common=True),
        Option(("--csv",), f"print one table as CSV on stdout: {', '.join(TABLES)}", "TABLE", common=True),
        Option(("--html",), "write the report as a self-contained page to FILE", "FILE", common=True),
        Option(
            ("--since",),
            "also show what changed since an earlier scan; PART is what -o wrote then",
            "PART",
            note="The earlier scan must be of the same PATHs, typed the same way.",
        ),
        Option(
            ("--price",),
            "with --html: price of storage in EUR per TB, to state the savings in money",
            "EUR",
        ),
        Option(("--parquet",), "write all tables as Parquet files to DIR (needs pyarrow)", "DIR"),
        OVERWRITE,
        Option(("-q", "--quiet"), "show no progress"),
        HELP,
    ),
)

OPTIONS = (
    FILTER_GROUP,
    OptionGroup(
        "Measure",
        (
            Option(("-x", "--one-file-system"), "stay on the file system of each PATH", common=True),
            Option(
                ("--level",), f"also measure fixed blocks: {' or '.join(FIXED_LEVELS)}; repeatable", "NAME"
            ),
            Option(("--no-zstd",), "do not estimate what compression saves after deduplication"),
        ),
    ),
    OptionGroup(
        "Limit reading and memory",
        (
            DEPTH,
            MAX_RATE,
            Option(
                ("--memory",),
                "memory for the tables of chunks; larger tables are sampled"
                f" (default: {DEFAULT_MEMORY >> 20}m)",
                "SIZE",
            ),
            Option(
                ("--time",),
                "read files in random order and stop after TIME, such as 90s, 30m or 2h",
                "TIME",
                common=True,
            ),
            Option(("--sample",), "read about RATE of the bytes, such as 0.1 or 10%", "RATE", common=True),
            Option(("--seed",), "seed of the random order (default: 0)", "N"),
        ),
    ),
    CATALOG_GROUP,
    OptionGroup("Cluster", (CLUSTER, SLICES)),
    OptionGroup(
        "Parts",
        (
            Option(
                ("-o", "--output"),
                "also write this scan to FILE, which ends in .rdcscan, for rdc merge to combine with others",
                "FILE",
                common=True,
            ),
            SLICE,
            Option(
                ("--shift",),
                "count only one chunk in 2^S, for smaller parts (default: 0)",
                "S",
            ),
        ),
    ),
    OUTPUT_GROUP,
)


class Output(Record):
    """The destinations of the report. With none named, the terminal form is printed."""

    json: bool = False
    csv: str | None = None
    parquet: str | None = None
    html: str | None = None
    since: str | None = None
    """The earlier part to compare with."""
    price: float | None = None
    """EUR a terabyte."""
    quiet: bool = False
    overwrite: bool = False


class ScanRequest(Record):
    """The checked command line of `rdc scan`."""

    paths: tuple[str, ...]
    options: ScanOptions
    part: str | None
    """The part to write."""
    output: Output
    catalog: CatalogChoice
    cluster: OnCluster | None


def parse_scan(words: list[str]) -> Words:
    """Parse the words after `rdc scan`. Raises UsageError."""
    return parse_words(words, OPTIONS, {}, command="rdc scan")


def read_scan(words: Words, read_rule_file: ReadRuleFile) -> ScanRequest:
    """Read the request. Raises UsageError for a contradiction, RdcError for an unreadable rule file."""
    if not words.operands:
        raise words.missing("rdc scan needs a directory or a file", "rdc scan")
    levels = tuple(dict.fromkeys(words.values("--level")))
    for level in levels:
        if level not in FIXED_LEVELS:
            raise UsageError(f"--level={level}: unknown; {' and '.join(FIXED_LEVELS)} can be added")
    shifts = f"a whole number from 0 to {SHIFT_MOST} is expected"
    part = read_part(words)
    slicing = read_slicing(words, part, "rdcscan")
    cluster = slicing if isinstance(slicing, OnCluster) else None
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
            seed=words.number("--seed", 0, "a whole number is expected"),
            shift=words.number("--shift", 0, shifts, most=SHIFT_MOST, digits=3),
            slice=slicing.slice if isinstance(slicing, OneSlice) else None,
            depth=read_depth(words),
            max_rate=read_max_rate(words),
        ),
        part=None if cluster else part,
        output=read_output(words),
        catalog=read_choice(words),
        cluster=cluster,
    )


def read_output(words: Words) -> Output:
    """Read where the report goes. Raises UsageError."""
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
    since, price = words.last("--since"), words.last("--price")
    if since is not None and not since.value:
        raise UsageError("--since needs a part of an earlier scan, such as: --since=before.rdcscan")
    if price is not None and page is None:
        raise UsageError("--price is for the page of --html")
    # A scan can take hours, so this fails before it.
    if parquet is not None and importlib.util.find_spec("pyarrow") is None:
        raise UsageError("--parquet needs pyarrow (python3 -m pip install pyarrow); --csv needs nothing")
    return Output(
        json=words.has("--json"),
        csv=None if csv is None else csv.value,
        parquet=None if parquet is None else parquet.value,
        html=None if page is None else page.value,
        since=None if since is None else since.value,
        price=None if price is None else _price(price.value),
        quiet=words.has("--quiet"),
        overwrite=words.has("--overwrite"),
    )


def _price(text: str) -> float:
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,4})?", text, re.ASCII) is None:
        raise UsageError(f"--price={text}: a price in EUR per TB is expected, such as 25 or 4.5")
    return float(text)


def read_memory(words: Words) -> int:
    """Return the bytes of --memory. Raises UsageError."""
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


def read_part(words: Words) -> str | None:
    """Return the file of --output, or None if it is absent. Raises UsageError."""
    given = words.last("--output")
    if given is None:
        return None
    if not given.value:
        raise UsageError("-o needs a file, such as: -o part.rdcscan")
    return given.value


SUMMARY = "measure what deduplication and compression would save"

_INTRODUCTION = """\
Usage: rdc scan [OPTIONS] PATH...

Examples:
  rdc scan data/                        how much data is duplicated, and where
  rdc scan -x --time=30m /              estimate a whole disk in half an hour
  rdc scan --json data/ | jq .levels    for scripts
  rdc scan -o a.rdcscan data/           on each machine; then: rdc merge a.rdcscan b.rdcscan
  rdc scan s3://bucket/data             the objects of a bucket (needs s3fs)
"""

_MORE_EXAMPLES = """\
  rdc scan --slice=1/8 -o 1.rdcscan /data
                                        one of eight jobs that share a tree; then: rdc merge *.rdcscan
  rdc scan --cluster=dask://node:8786 -o /srv/parts /data
                                        the same as tasks on a cluster
"""

_ABOUT = """
rdc scan reads every file once. It counts identical files and identical chunks of about 4, 16 and 64 KiB,
which are cut by content. Hard links of one file count once, and holes do not count. Nothing is changed.
Ctrl-C ends the scan and reports what was read so far.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 20 interrupted (the report covers what was read), 23 some files could not be
read, 24 some files changed or vanished during the scan.
"""

help_text = HelpText(
    _INTRODUCTION + _MORE_EXAMPLES + _ABOUT, OPTIONS, _CLOSING, short_help("scan", _INTRODUCTION + _ABOUT)
)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc scan` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_scan(list(words))
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    read_file = RuleFiles(environment, [])
    request = read_scan(parsed, read_file)
    claims = claim_results(request.part, request.output)
    claims.check_named(read_file.named)
    report = _perform(request, claims, environment)
    print_report(report, request.output, environment, shlex.join(["rdc", "scan", *words]))
    return report.exit


def _perform(request: ScanRequest, claims: Claims, environment: Environment) -> ScanReport:
    from rdc.library.scans import scan_claimed

    quiet = request.output.quiet
    output = TerminalOutput(
        environment.data, environment.talk, environment.progress(quiet=quiet), quiet=quiet
    )
    with reporting(output), stop_requests() as stop:
        if request.cluster is not None:
            from rdc.files.objects.object_store import is_url

            claims.check_below(path for path in map(os.fsencode, request.paths) if not is_url(path))
            return _on_cluster(request, request.cluster, output, stop)
        with request.catalog.store() as catalog:
            return scan_claimed(
                [os.fsencode(path) for path in request.paths],
                request.options,
                _part(request.part, request.output),
                claims,
                since=request.output.since,
                catalog=catalog,
                reporter=output,
                stop=stop,
                clock=environment.clock,
            )


def _on_cluster(request: ScanRequest, cluster: OnCluster, reporter: Reporter, stop: StopSignal) -> ScanReport:
    """Scan in slices, the tasks of an engine. What is done by then stays in the directory of parts."""
    from rdc.cluster.engines import parts_on_engine
    from rdc.library.scans import merge, scan_parts

    make = partial(scan_parts, request.paths, options=request.options, reporter=reporter, stop=stop)
    parts = parts_on_engine(cluster.engine, cluster.slices, cluster.directory, b"rdcscan", make)
    return merge(parts, MergeOptions(request.options.memory), since=request.output.since, stop=stop)


def claim_results(part: str | None, output: Output, kind: OutputKind | None = None) -> Claims:
    """Look at the places of all requested files before a scan of hours. `kind`: of the part, if it is not
    that of a scan. Raises RdcError if one cannot or may not be written."""
    wanted = [one for one in (_part(part, output, kind), _page(output)) if one is not None]
    # The directory is created when it is needed.
    if output.parquet is not None and os.path.lexists(output.parquet):
        wanted += parquet_outputs(output.parquet, overwrite=output.overwrite)
    return claim_outputs(wanted)


def _part(part: str | None, output: Output, kind: OutputKind | None = None) -> OutputFile | None:
    from rdc.survey.parts.sections import SCAN_PART

    return None if part is None else OutputFile(os.fsencode(part), kind or SCAN_PART, output.overwrite)


def _page(output: Output) -> OutputFile | None:
    if output.html is None:
        return None
    from rdc.survey.report.page import SCAN_PAGE

    return OutputFile(os.fsencode(output.html), SCAN_PAGE, output.overwrite)


def print_report(report: ScanReport, output: Output, environment: Environment, command: str) -> None:
    """Write the report to the outputs that `output` names. `command`: what was typed.

    stdout comes first, so that an error of an output file does not lose it.
    """
    _print_report(report, output, environment)
    if output.parquet is not None:
        write_parquet(report, output.parquet, overwrite=output.overwrite)
    page = _page(output)
    if page is not None:
        from rdc.report.html_page import PageOrigin
        from rdc.survey.report.page import write_html

        write_html(report, page, PageOrigin.here(command), output.price)


def _print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    if output.json:
        environment.data(scan_json(report))
    elif output.csv is not None:
        environment.data(scan_csv(report, output.csv))
    else:
        text = io.StringIO()
        print_scan(
            report,
            text,
            terminal=environment.stdout_is_terminal,
            color=environment.color,
            width=_width(environment),
            page=output.html is not None,
        )
        environment.data(text.getvalue())


def _width(environment: Environment) -> int | None:
    if not environment.stdout_is_terminal:
        return None
    import shutil

    return shutil.get_terminal_size((100, 24)).columns
