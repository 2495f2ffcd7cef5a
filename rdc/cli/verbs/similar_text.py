"""`rdc similar --text PATH...`: finds near-duplicate documents. `rdc merge` prints them the same way."""

from __future__ import annotations

import os

from rdc.cli.environment import Environment
from rdc.cli.options.document_options import (
    DocumentOutput,
    read_document_options,
    read_document_output,
    refuse_beside_slices,
)
from rdc.cli.options.filter_options import read_rule_file, read_rules
from rdc.cli.options.resource_options import Slicing, read_slicing
from rdc.cli.options.table import Words
from rdc.cli.verb import json_output, keep_freed_memory, perform, reporting, stop_requests
from rdc.errors import ExitCode, UsageError
from rdc.files.objects.object_url import is_url
from rdc.files.own.claims import Claims
from rdc.files.own.output_file import claim_outputs, write_output
from rdc.lean.records import replace
from rdc.report.output import Output, TerminalOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.similar import DocumentOptions, DocumentReport
    from rdc.progress import Reporter

__all__ = ["claim_results", "print_documents", "run_text"]

_OTHERS = (
    "--to",
    "--top",
    "--folders",
    "--min-size",
    "--max-size",
    "--null",
    "--csv",
)
"""Options of the search for similar files that mean nothing for documents. Those of the catalog may come from
the environment; nothing is kept there."""


def run_text(words: Words, environment: Environment) -> ExitCode:
    """Runs `rdc similar --text`. Raises RdcError, which the caller prints."""
    for key in _OTHERS:
        if words.has(key):
            raise UsageError(f"{key} and --text exclude each other (see rdc similar --help)")
    rule_files: list[bytes] = []

    def read_file(name: str) -> bytes:
        rule_files.append(os.fsencode(name))
        return read_rule_file(name, environment)

    options = read_document_options(words, read_rules(words, read_file))
    output = read_document_output(words)
    slicing = read_slicing(words, output.part, "rdcdocs")
    if slicing.slice is not None:
        refuse_beside_slices(words, cluster=False)
        claim_results(output).check_named(rule_files)
        return _write_slice(words, options, slicing, output, environment)
    if slicing.cluster is not None:
        refuse_beside_slices(words, cluster=True)
        claims = claim_results(replace(output, part=None))
        claims.check_named(rule_files)
        claims.check_below(path for path in map(os.fsencode, words.operands) if not is_url(path))
        return _on_cluster(words, options, slicing, output, environment)
    from rdc.library.similar import search_claimed, stage_of

    claims = claim_results(output, stage_of(options))
    claims.check_named(rule_files)

    def search(reporter: Reporter) -> DocumentReport:
        given = [os.fsencode(path) for path in words.operands]
        return search_claimed(given, options, output.part_output, claims, reporter=reporter)

    return print_documents(search, output, environment)


def claim_results(output: DocumentOutput, filled: Sequence[bytes] = ()) -> Claims:
    """Look at the places of all requested files before anything is read. `filled`: directories that the
    search fills. Raises RdcError if a result cannot or may not be written."""
    wanted = (output.list_output, output.part_output, output.html_output)
    return claim_outputs([one for one in wanted if one is not None], filled)


def _write_slice(
    words: Words, options: DocumentOptions, slicing: Slicing, output: DocumentOutput, environment: Environment
) -> ExitCode:
    """Writes the part of one slice, and says how much it is."""
    from rdc.library.similar import document_slice
    from rdc.report.documents import slice_text

    assert slicing.slice is not None  # noqa: S101 - the caller asked
    assert output.part is not None  # noqa: S101 - read_slicing refuses it
    _keep_freed_memory()
    terminal = _DocumentListing(environment, quiet=output.quiet)
    with reporting(terminal):
        found = document_slice(
            words.operands,
            slicing.slice,
            output.part,
            options,
            overwrite=output.overwrite,
            reporter=terminal,
        )
    if not output.quiet:
        environment.talk(slice_text(found, slicing.slice) + "\n")
    return found.exit


def _on_cluster(
    words: Words, options: DocumentOptions, slicing: Slicing, output: DocumentOutput, environment: Environment
) -> ExitCode:
    from functools import partial

    from rdc.cluster.engines import parts_on_engine
    from rdc.library.similar import document_parts, merge_documents

    cluster, out = slicing.cluster, output.part
    assert cluster is not None  # noqa: S101 - the caller asked
    assert out is not None  # noqa: S101 - read_slicing refuses it

    def search(reporter: Reporter) -> DocumentReport:
        with stop_requests() as stop:
            make = partial(document_parts, words.operands, options=options, reporter=reporter, stop=stop)
            parts = parts_on_engine(cluster, slicing.slices, out, b"rdcdocs", make)
            return merge_documents(parts, options, reporter=reporter, stop=stop)

    return print_documents(search, replace(output, part=None), environment)


def print_documents(
    search: Callable[[Reporter], DocumentReport], output: DocumentOutput, environment: Environment
) -> ExitCode:
    """Runs a search, writes its results in the forms that `output` asks for, and returns the exit code."""
    _keep_freed_memory()
    shown: Output = (
        json_output(environment) if output.json else _DocumentListing(environment, quiet=output.quiet)
    )
    report = perform(shown, lambda: search(shown))
    listed, page = output.list_output, output.html_output
    if listed is not None:
        from rdc.report.documents import keep_lines

        write_output(listed, keep_lines(report.kept))
    if page is not None:
        from rdc.report.documents import documents_page

        write_output(page, documents_page(report))
    return report.exit


def _keep_freed_memory() -> None:
    """Batches of texts take the memory of those before them."""
    from rdc.limits.searches import BATCH_BYTES

    keep_freed_memory(mapped=2 * BATCH_BYTES, untrimmed=BATCH_BYTES)


class _DocumentListing(TerminalOutput):
    """Prints all groups and matches at the end."""

    def __init__(self, environment: Environment, *, quiet: bool) -> None:
        """`quiet`: without a summary."""
        super().__init__(environment.data, environment.talk, environment.progress(quiet=quiet))
        self._environment = environment
        self._summarised = not quiet

    def finish(self, report: DocumentReport) -> None:
        from rdc.report.documents import document_text, summary_text

        self.close()
        for number, group in enumerate(report.groups):
            self._data(("\n" if number else "") + "".join(map(document_text, group.documents)))
        for one in report.matches:
            self._data(document_text(one, like=True))
        if self._summarised:
            self._environment.flush()
            self._talk(summary_text(report.summary) + "\n")
