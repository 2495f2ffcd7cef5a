"""`rdc serve`: the far side of a sync, for one session on stdin and stdout, or for many as a daemon."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from rdc.cli.environment import Environment
from rdc.cli.memory import keep_freed_memory
from rdc.cli.options import Option, OptionGroup, options_help, parse_words
from rdc.errors import ExitCode, RdcError, UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from rdc.session.commands import Conversation
    from rdc.session.serve import FollowedTree, Following

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

SUMMARY = "answer syncs: one through a remote shell, or many as a daemon (rdc://)"

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(("--stdio",), "answer one session on stdin and stdout; started by the other side"),
            Option(("--config",), "run a daemon as FILE says, until SIGTERM", "FILE"),
            Option(("--check",), "only read FILE and the keys, and say whether they are right"),
            Option(("--allow-root",), "stay root, so that modules can keep owners"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc serve --config=FILE [--check] [--allow-root]
       rdc serve --stdio

A daemon listens on a TCP port (8730 where FILE does not say), speaks TLS 1.3, and knows its peers by their
keys (see rdc keys --help). The least that FILE needs:

  [modules.data]
  path = "/srv/data"
  allow = ["laptop"]           # trusted with: rdc keys trust laptop FILE
  read-only = false            # true where it is not said

Peers then write rdc sync rdc://HOST/data/ ... SIGHUP reads FILE and the keys anew. rdc/daemon/DAEMON.md has
all settings, limits and log fields.

rdc sync SRC HOST:DST starts rdc serve --stdio on HOST through the remote shell. To allow a key nothing else,
in ~/.ssh/authorized_keys on HOST:

  command="rdc serve --stdio" ssh-ed25519 AAAA...
"""


def help_text() -> str:
    return _INTRODUCTION + options_help(OPTIONS)


def run(
    words: Sequence[str],
    environment: Environment,
    *,
    serve_stdio: Callable[[Following | None], ExitCode] | None = None,
) -> ExitCode:
    """The words after `rdc serve`. Raises RdcError."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc serve")
    if parsed.has("--help"):
        environment.show_help(help_text())
        return ExitCode.OK
    if parsed.operands:
        raise UsageError(f"rdc serve takes no {parsed.operands[0]} (see rdc serve --help)")
    config = parsed.last("--config")
    if parsed.has("--stdio") == (config is not None):
        raise UsageError("rdc serve needs --config=FILE for a daemon, or --stdio (see rdc serve --help)")
    if config is not None:
        from pathlib import Path

        return _daemon(
            Path(config.value),
            environment,
            check=parsed.has("--check"),
            allow_root=parsed.has("--allow-root"),
        )
    if serve_stdio is None:
        from rdc.session import serve

        keep_freed_memory()
        serve_stdio = serve.serve_stdio
    return serve_stdio(_following)


def _following(tree: FollowedTree) -> Conversation[None]:
    """Loads what it takes when somebody asks for it."""
    try:
        from rdc.watch.far import following
    except ImportError as error:
        raise RdcError(
            f"the far side cannot follow a directory, which needs Linux's inotify: {error}",
            code=ExitCode.USAGE,
        ) from error
    return following(tree)


def _daemon(path: Path, environment: Environment, *, check: bool, allow_root: bool) -> ExitCode:
    if check:
        from rdc.daemon.config import read_config
        from rdc.daemon.privileges import check_root

        config = read_config(path, environment.environ)
        check_root(config.user, allow_root=allow_root)
        modules = ", ".join(sorted(config.modules))
        for line in config.overlaps:
            environment.talk(f"{printable(str(path))}: {line}\n")
        environment.data(f"{path}: right; modules: {modules}; trusted keys: {len(config.keys.trusted)}\n")
        return ExitCode.OK

    from rdc.daemon.serving import serve

    following: Following | None = None
    # Now: sessions are copies of this process, and may not be able to read the program's files.
    with contextlib.suppress(ImportError):  # watchdog refuses to load where the system has no inotify
        from rdc.watch import far

        following = far.following

    def announce(address: str) -> None:
        environment.data(f"listening on rdc://{address}/\n")
        environment.flush()

    return serve(path, environment.environ, allow_root=allow_root, announce=announce, following=following)
