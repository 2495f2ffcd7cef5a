"""`rdc scan PATH...`: measure what deduplication and compression would save, in one read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.scan_options import SCAN_OPTIONS, Output, ScanRequest, parse_scan, read_scan
from rdc.cli.verb import HelpText, reporting, stop_requests
from rdc.errors import ExitCode
from rdc.files.objects.object_url import is_url
from rdc.files.own.claims import Claims
from rdc.files.own.output_file import Output as OutputFile
from rdc.files.own.output_file import OutputKind, claim_outputs
from rdc.model.scan import MergeOptions
from rdc.report.output import TerminalOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanReport
    from rdc.progress import Reporter, StopSignal

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


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc scan` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_scan(list(words))
    if help_text.shown(parsed, environment):
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
    from rdc.library.scans import scan_claimed

    quiet = request.output.quiet
    output = TerminalOutput(
        environment.data, environment.talk, environment.progress(quiet=quiet), quiet=quiet
    )
    with reporting(output), stop_requests() as stop:
        if request.cluster is not None:
            claims.check_below(path for path in map(os.fsencode, request.paths) if not is_url(path))
            return _on_cluster(request, output, stop)
        with request.catalog.store() as catalog:
            return scan_claimed(
                [os.fsencode(path) for path in request.paths],
                request.options,
                _part(request.part, request.output),
                claims,
                catalog=catalog,
                reporter=output,
                stop=stop,
                clock=environment.clock,
            )


def _on_cluster(request: ScanRequest, reporter: Reporter, stop: StopSignal) -> ScanReport:
    """Scans in slices, the tasks of an engine. What is done by then stays in the directory of parts."""
    from functools import partial

    from rdc.cluster.engines import parts_on_engine
    from rdc.library.scans import merge, scan_parts

    assert request.cluster is not None  # noqa: S101 - the caller asked
    assert request.part is not None  # noqa: S101 - read_scan refuses it
    make = partial(scan_parts, request.paths, options=request.options, reporter=reporter, stop=stop)
    parts = parts_on_engine(request.cluster, request.slices, request.part, b"rdcscan", make)
    return merge(parts, MergeOptions(request.options.memory), stop=stop)


def claim_results(part: str | None, output: Output, kind: OutputKind | None = None) -> Claims:
    """Look at the places of all requested files before a scan of hours. `kind`: of the part, if it is not
    that of a scan. Raises RdcError if one cannot or may not be written."""
    wanted = [one for one in (_part(part, output, kind), _page(output)) if one is not None]
    if output.parquet is not None:
        from rdc.report.scan.tables import parquet_outputs

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
    from rdc.report.scan.page import SCAN_PAGE

    return OutputFile(os.fsencode(output.html), SCAN_PAGE, output.overwrite)


def print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    """Writes the report to the outputs that `output` names.

    stdout comes first, so that an error of an output file does not lose it.
    """
    _print_report(report, output, environment)
    if output.parquet is not None:
        from rdc.report.scan.tables import write_parquet

        write_parquet(report, output.parquet, overwrite=output.overwrite)
    page = _page(output)
    if page is not None:
        from rdc.report.scan.page import write_html

        write_html(report, page)


def _print_report(report: ScanReport, output: Output, environment: Environment) -> None:
    if output.json:
        from rdc.report.scan.tables import scan_json

        environment.data(scan_json(report))
    elif output.csv is not None:
        from rdc.report.scan.tables import scan_csv

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
