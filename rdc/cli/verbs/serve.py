"""`rdc serve`: the remote side of a sync, for one session on stdin and stdout, or for many as a daemon."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words, parsed_value
from rdc.cli.verb import HelpText, keep_freed_memory, short_help
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.model import sync as model
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeAlias

    from rdc.session.runtime.commands import Conversation
    from rdc.session.serve import Admission, FollowedTree, Following, InvitedTree, Meeting

    ServeStdio: TypeAlias = Callable[
        [Following | None, Admission | None, int | None, Meeting | None], ExitCode
    ]


SUMMARY = "answer syncs: one through a remote shell, or many as a daemon (rdc://)"

MAX_MEMORY = model.OPTIONS["max_memory"].options[0]

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(
                ("--stdio",),
                "answer one session on stdin and stdout; the other side starts this",
                common=True,
            ),
            Option(
                ("--config",), "run a daemon with the settings in FILE, until SIGTERM", "FILE", common=True
            ),
            Option(("--check",), "only check FILE and the keys, and start nothing", common=True),
            Option(("--allow-root",), "stay root, so that modules can keep owners"),
            MAX_MEMORY,
            HELP,
        ),
    ),
    OptionGroup(
        "Confining a session of --stdio",
        (
            Option(
                ("--root",),
                "limit the session to DIR: paths are relative to it, '..' and symlinks do not lead out of it,"
                " owners are not kept",
                "DIR",
                common=True,
            ),
            Option(("--read-only",), "change nothing below DIR; it can be fetched", common=True),
            Option(("--write-only",), "let nothing be fetched or deleted", common=True),
            Option(("--no-delete",), "reject --delete; files can still be replaced"),
            Option(
                ("--append-only",),
                "only create new entries; never replace, change, rename or delete existing ones",
                common=True,
            ),
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc serve --config=FILE [--check] [--allow-root]
       rdc serve --stdio [--max-memory=SIZE]
                 [--root=DIR [--read-only | --write-only] [--no-delete] [--append-only]]

A daemon listens on a TCP port (8730 by default), uses TLS 1.3, and identifies its peers by their keys (see
rdc keys --help). FILE needs at least:

  [modules.data]
  path = "/srv/data"
  allow = ["laptop"]           # trusted with: rdc keys trust laptop FILE
  read-only = false            # default: true

A peer then runs, for example, rdc sync rdc://HOST/data/ copy/. On SIGHUP the daemon reads FILE and the keys
again. rdc serve --man lists all settings and limits.

rdc sync SRC HOST:DST starts rdc serve --stdio on HOST through the remote shell. Without --root such a session
is not confined: it can read and write all that the account can, including ~/.ssh/authorized_keys. To limit a
key to one directory, put this line into ~/.ssh/authorized_keys on HOST:

  restrict,command="rdc serve --stdio --root=/srv/backup --write-only" ssh-ed25519 AAAA...
"""

_ABOUT = """
restrict disables terminals and forwarding for the key. command runs instead of the client's command. --root
confines the session to /srv/backup: HOST:a and HOST:/a are both /srv/backup/a. With --write-only the client
can neither read nor delete; it can still replace files, unless --append-only is given, too. Any other request
is rejected with exit code 5. A session with --root uses no catalog.

With --append-only, an existing file that differs at the source is reported and stays unchanged; the exit code
is 23, and the rest is synced. The times of existing directories are not set; that is no error.
"""


help_text = HelpText(_INTRODUCTION + _ABOUT, OPTIONS, short=short_help("serve", _INTRODUCTION))


def run(
    words: Sequence[str],
    environment: Environment,
    *,
    serve_stdio: ServeStdio | None = None,
) -> ExitCode:
    """Run `rdc serve` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc serve")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if parsed.operands:
        raise UsageError(f"rdc serve takes no {parsed.operands[0]} (see rdc serve --help)")
    config = parsed.last("--config")
    if parsed.has("--stdio") == (config is not None):
        raise UsageError("rdc serve needs --config=FILE for a daemon, or --stdio (see rdc serve --help)")
    if config is not None and parsed.has("--max-memory"):
        raise UsageError("--max-memory goes with --stdio; a daemon's FILE says memory")
    admit = _admission(parsed)
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
    return serve_stdio(_following, admit, read_max_memory(parsed), _meeting)


_CONFINING = ("--read-only", "--write-only", "--no-delete", "--append-only")


def _admission(parsed: Words) -> Admission | None:
    """Read the access that --root and its options allow; None without --root. Raises UsageError."""
    root = parsed.last("--root")
    given = [name for name in _CONFINING if parsed.has(name)]
    if root is None:
        if given:
            raise UsageError(f"{given[0]} needs --root=DIR, which it is about (see rdc serve --help)")
        return None
    if not parsed.has("--stdio"):
        raise UsageError(
            "--root goes with --stdio; a daemon's modules are in its FILE (see rdc serve --help)"
        )
    for name in ("--write-only", "--append-only"):
        if parsed.has("--read-only") and parsed.has(name):
            raise UsageError(f"--read-only and {name} together allow nothing: leave out one of them")
    from rdc.daemon.access import KEY_TITLE, Access, admission

    if not root.value or "\0" in root.value:
        raise UsageError("--root needs the path of a directory")
    path = os.path.normpath(os.path.join(os.getcwd(), root.value))
    real = os.path.realpath(path)
    if path.removeprefix("/") != real.removeprefix("/"):
        raise UsageError(f"--root: {path} goes through a symbolic link; write {real}")
    access = Access(
        title=KEY_TITLE,
        read_only=parsed.has("--read-only"),
        write_only=parsed.has("--write-only"),
        no_delete=parsed.has("--no-delete"),
        append_only=parsed.has("--append-only"),
    )
    return admission(os.fsencode(path), access)


def _following(tree: FollowedTree) -> Conversation[None]:
    """Start following a directory. Loads the modules on the first request."""
    try:
        from rdc.watching.follower import following
    except ImportError as error:
        raise RdcError(
            f"the remote side cannot follow a directory, which needs Linux's inotify: {error}",
            code=ExitCode.USAGE,
        ) from error
    return following(tree)


def _meeting(invited: InvitedTree) -> Conversation[None]:
    """Bring a directory together with the dialler's. Loads the modules on the first request."""
    from rdc.uniting.far_side import answer_meeting

    return answer_meeting(invited)


def _daemon(path: Path, environment: Environment, *, check: bool, allow_root: bool) -> ExitCode:
    if check:
        from rdc.daemon.config import read_config
        from rdc.daemon.serving import check_root

        config = read_config(path, environment.environ)
        check_root(config.user, allow_root=allow_root)
        modules = ", ".join(sorted(config.modules))
        for line in config.overlaps:
            environment.talk(f"{printable(str(path))}: {line}\n")
        keys = len(config.keys.trusted)
        environment.data(f"{printable(str(path))}: right; modules: {modules}; trusted keys: {keys}\n")
        return ExitCode.OK

    from rdc.daemon.serving import serve
    from rdc.uniting.far_side import answer_meeting

    following: Following | None = None
    # Imported before the sessions fork, because a session may lack the right to read the program's files.
    with contextlib.suppress(ImportError):  # watchdog cannot load without inotify
        from rdc.watching import follower as far

        following = far.following

    def announce(address: str) -> None:
        environment.data(f"listening on rdc://{address}/\n")
        environment.flush()

    return serve(
        path,
        environment.environ,
        allow_root=allow_root,
        announce=announce,
        following=following,
        meeting=answer_meeting,
    )


def read_max_memory(words: Words) -> int | None:
    """Return the bytes of --max-memory, 0 for all of the machine's, or None if it is absent. Raises
    UsageError."""
    last = words.last("--max-memory")
    return None if last is None else parsed_value(last, model.OPTIONS["max_memory"])
