"""`rdc serve --stdio`: the far side of a sync, started by the near one through the remote shell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rdc.cli.environment import Environment
from rdc.cli.memory import keep_freed_memory
from rdc.cli.options import Option, OptionGroup, options_help, parse_words
from rdc.errors import ExitCode, UsageError

__all__ = ["SUMMARY", "help_text", "run"]

SUMMARY = "answer a sync on stdin and stdout; started by the other side, not by hand"

_OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(("--stdio",), "speak the protocol on stdin and stdout (required)"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc serve --stdio

rdc sync SRC HOST:DST starts this on HOST through the remote shell. To allow a key nothing but this:
  command="rdc serve --stdio" ssh-ed25519 AAAA...        (a line of ~/.ssh/authorized_keys on HOST)
"""


def help_text() -> str:
    return _INTRODUCTION + options_help(_OPTIONS)


def run(
    words: Sequence[str], environment: Environment, *, serve_stdio: Callable[[], ExitCode] | None = None
) -> ExitCode:
    """The words after `rdc serve`. Raises RdcError."""
    parsed = parse_words(words, _OPTIONS, {}, command="rdc serve")
    if parsed.has("--help"):
        environment.data(help_text())
        return ExitCode.OK
    if parsed.operands:
        raise UsageError(f"rdc serve takes no {parsed.operands[0]} (see rdc serve --help)")
    if not parsed.has("--stdio"):
        raise UsageError("rdc serve needs --stdio; listening on a network port is not available yet")
    if serve_stdio is None:
        from rdc.session import serve

        keep_freed_memory()
        serve_stdio = serve.serve_stdio
    return serve_stdio()
