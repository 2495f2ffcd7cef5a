"""`rdc scan PATH...`: measure what deduplication and compression would save, in one read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.scan_options import SCAN_OPTIONS, Output, ScanRequest, parse_scan, read_scan
from rdc.cli.options.table import options_help
from rdc.cli.verbs.stop_requests import stop_requests
from rdc.errors import ExitCode
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanReport

__all__ = ["OPTIONS", "SUMMARY", "check_outputs", "help_text", "print_report", "run"]

OPTIONS = SCAN_OPTIONS

SUMMARY = "measure what deduplication and compression would save"

_INTRODUCTION = """\
Usage: rdc scan [OPTIONS] PATH...

Examples:
  rdc scan data/                        how much is there twice, and where
  rdc scan -x --time=30m /              what half an hour tells about a whole disk
  rdc scan --json data/ | jq .levels    for programs
  rdc scan -o a.rdcscan data/           on each machine, then: rdc merge a.rdcscan b.rdcscan
  rdc scan s3://bucket/data             the objects of a store (needs s3fs)
  rdc scan --slice=1/8 -o 1.rdcscan /data   one of eight jobs that share a tree, then: rdc merge *.rdcscan
  rdc scan --cluster=dask://node:8786 -o /shared/parts /data   the same as tasks of a cluster

Every file is read once: whole files, and chunks of about 4, 16 and 64 KiB cut where the content says so, are
counted together. Hard links count once, holes not at all. Nothing is changed. Ctrl-C ends the scan and
reports what was read until then.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 20 interrupted (the report is of what was read), 23 some files could not be read,
24 some files changed or vanished meanwhile.
"""


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS) + _CLOSING


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc scan` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_scan(list(words))
    if parsed.has("--help"):
        environment.show_help(help_text())
        return ExitCode.OK
    request = read_scan(parsed, lambda name: read_rule_file(name, environment))
    check_outputs(None if request.cluster else request.part, request.output)
    report = _perform(request, environment)
    print_report(report, request.output, environment)
    return report.exit


def _perform(request: ScanRequest, environment: Environment) -> ScanReport:
    from rdc.library.scan import scan

    quiet = request.output.quiet
    talk = Trouble(environment.talk, environment.progress(quiet=quiet), quiet=quiet)
    try:
        if request.cluster is not None:
            from rdc.cli.verbs.cluster_scan import cluster_scan

            with stop_requests() as stop:
                return cluster_scan(request, talk, stop)
        with stop_requests() as stop, request.catalog.store() as catalog:
            return scan(
                request.paths,
                request.options,
                part=request.part,
                catalog=catalog,
                reporter=talk,
                stop=stop,
                clock=environment.clock,
            )
    finally:
        talk.close()


def check_outputs(part: str | None, output: Output) -> None:
    """Raises RdcError if a requested output file cannot be written. Runs before a scan of hours."""
    from rdc.files.own.output_file import check_output

    for name in (part, output.html):
        if name is not None:
            check_output(os.fsencode(name))
    if output.html is not None:
        from rdc.report.scan.page_file import check_page

        check_page(output.html)


def print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    """Writes the report to the outputs that `output` names.

    stdout comes first, so that an error of an output file does not lose it.
    """
    _print_report(report, output, environment)
    if output.parquet is not None:
        from rdc.report.scan.parquet_tables import write_parquet

        write_parquet(report, output.parquet)
    if output.html is not None:
        from rdc.report.scan.html_page import write_html

        write_html(report, output.html)


def _print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    if output.json:
        from rdc.report.scan.json_document import scan_json

        environment.data(scan_json(report))
    elif output.csv is not None:
        from rdc.report.scan.csv_tables import scan_csv

        environment.data(scan_csv(report, output.csv))
    else:
        import io

        from rdc.report.scan.terminal import print_scan

        text = io.StringIO()
        print_scan(
            report,
            text,
            terminal=environment.stdout_is_terminal,
            color=environment.color,
            width=_width(environment),
        )
        environment.data(text.getvalue())


def _width(environment: Environment) -> int | None:
    if not environment.stdout_is_terminal:
        return None
    import shutil

    return shutil.get_terminal_size((100, 24)).columns
