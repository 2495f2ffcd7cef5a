"""`rdc merge PART...`: merges the parts of several scans into one report."""

from __future__ import annotations

from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.scan_options import OUTPUT_GROUP, read_memory, read_output, read_part
from rdc.cli.options.table import Option, OptionGroup, options_help, parse_words
from rdc.cli.verbs.scan import check_outputs, print_report
from rdc.errors import ExitCode, UsageError
from rdc.model.scan import DEFAULT_MEMORY, MergeOptions

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

SUMMARY = "one report of several scans, made with rdc scan -o"

OPTIONS = (
    OptionGroup(
        "Merging",
        (
            Option(("--memory",), f"for the tables of chunks (default: {DEFAULT_MEMORY >> 20}m)", "SIZE"),
            Option(("-o", "--output"), "write what was merged as a part again", "FILE"),
        ),
    ),
    OUTPUT_GROUP,
)

_INTRODUCTION = """\
Usage: rdc merge [OPTIONS] PART...

Examples:
  rdc merge a.rdcscan b.rdcscan         what two machines hold in common, and each of them twice
  rdc merge --json *.rdcscan | jq .     for programs

Counts and duplicates are those of one scan of everything while the tables fit into --memory. Estimates, such
as what zstd saves, depend on how the files were divided among the parts and on the order of the parts, within
their bounds. Hard links between parts are not seen. Parts must have been made with the same options; one that
was not, or is damaged, is refused by name.
"""


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc merge` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc merge")
    if parsed.has("--help"):
        environment.show_help(help_text())
        return ExitCode.OK
    if not parsed.operands:
        raise UsageError("rdc merge needs parts, which rdc scan -o writes (see rdc merge --help)")
    memory, part, output = read_memory(parsed), read_part(parsed), read_output(parsed)
    check_outputs(part, output)

    from rdc.library.merge import merge

    report = merge(parsed.operands, MergeOptions(memory), part=part)
    print_report(report, output, environment)
    return report.exit
