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
from rdc.files.objects.object_url import is_url
from rdc.files.own.claims import Claims
from rdc.files.own.output_file import Output as OutputFile
from rdc.files.own.output_file import OutputKind, claim_outputs
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanReport

__all__ = ["OPTIONS", "SUMMARY", "claim_results", "help_text", "print_report", "run"]

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
  rdc scan --cluster=dask://node:8786 -o /srv/parts /data   the same as tasks of a cluster

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
    rule_files: list[bytes] = []

    def read_rules(name: str) -> bytes:
        rule_files.append(os.fsencode(name))
        return read_rule_file(name, environment)

    request = read_scan(parsed, read_rules)
    claims = claim_results(None if request.cluster else request.part, request.output)
    claims.check_named(rule_files)
    report = _perform(request, claims, environment)
    print_report(report, request.output, environment)
    return report.exit


def _perform(request: ScanRequest, claims: Claims, environment: Environment) -> ScanReport:
    from rdc.library.scan import scan_claimed

    quiet = request.output.quiet
    talk = Trouble(environment.talk, environment.progress(quiet=quiet), quiet=quiet)
    try:
        if request.cluster is not None:
            from rdc.cli.verbs.cluster_scan import cluster_scan

            claims.check_below(path for path in map(os.fsencode, request.paths) if not is_url(path))
            with stop_requests() as stop:
                return cluster_scan(request, talk, stop)
        with stop_requests() as stop, request.catalog.store() as catalog:
            return scan_claimed(
                [os.fsencode(path) for path in request.paths],
                request.options,
                _part(request.part, request.output),
                claims,
                catalog=catalog,
                reporter=talk,
                stop=stop,
                clock=environment.clock,
            )
    finally:
        talk.close()


def claim_results(part: str | None, output: Output, kind: OutputKind | None = None) -> Claims:
    """Look at the places of all requested files before a scan of hours. `kind`: of the part, if it is not
    that of a scan. Raises RdcError if one cannot or may not be written."""
    wanted = [one for one in (_part(part, output, kind), _page(output)) if one is not None]
    if output.parquet is not None:
        from rdc.report.scan.parquet_tables import parquet_outputs

        # The directory is created when it is needed.
        if os.path.lexists(output.parquet):
            wanted += parquet_outputs(output.parquet, overwrite=output.overwrite)
    return claim_outputs(wanted)


def _part(part: str | None, output: Output, kind: OutputKind | None = None) -> OutputFile | None:
    from rdc.survey.parts.sections import SCAN_PART

    return None if part is None else OutputFile(os.fsencode(part), kind or SCAN_PART, output.overwrite)


def _page(output: Output) -> OutputFile | None:
    if output.html is None:
        return None
    from rdc.report.scan.html_page import SCAN_PAGE

    return OutputFile(os.fsencode(output.html), SCAN_PAGE, output.overwrite)


def print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    """Writes the report to the outputs that `output` names.

    stdout comes first, so that an error of an output file does not lose it.
    """
    _print_report(report, output, environment)
    if output.parquet is not None:
        from rdc.report.scan.parquet_tables import write_parquet

        write_parquet(report, output.parquet, overwrite=output.overwrite)
    page = _page(output)
    if page is not None:
        from rdc.report.scan.html_page import write_html

        write_html(report, page)


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
