"""The command line that starts rdc on another machine."""

from __future__ import annotations

from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.location import RemoteShell

__all__ = ["remote_argv", "shell_words"]

_FOUND = (
    "exec sh -c 'command -v rdc >/dev/null"
    ' || { p=$HOME/.local/share/rdc/bin/rdc; test -x "$p" && exec "$p" serve --stdio; };'
    " exec rdc serve --stdio'"
)
"""rdc on the far PATH, else the one that `rdc install` put there. One word: the far user's shell reads
it, and no shell expands what stands in single quotes."""


def shell_words(command: str) -> list[str]:
    """The words of a command line with a shell's quoting, without expansion. ValueError if the quoting is
    invalid."""
    if command.isascii() and command.isprintable() and not any(mark in command for mark in "'\"\\"):
        return command.split()  # the same; shlex and the regular expressions it needs take 2.5 ms to load
    import shlex

    return shlex.split(command)


def remote_argv(host: str, shell: RemoteShell) -> list[str]:
    """The words of the remote shell, `host`, the words of the far program, "serve", "--stdio".

    The program is split at blanks with the shell's quoting, without expansion. A remote shell such as ssh
    passes the words to the far user's shell, which may expand them, as in rsync. UsageError for a host that
    the remote shell would take for an option.
    """
    if not host or host.startswith("-"):
        raise UsageError(f"'{host}' is not a host name")
    try:
        program = shell_words(shell.program)
    except ValueError as error:
        raise UsageError(f"--remote-path '{shell.program}': {error}") from error
    words = [*shell.command, host, *program, "serve", "--stdio"]
    if program == ["rdc"] and shell.command and shell.command[0].rpartition("/")[2] == "ssh":
        # Other remote shells may start the words themselves, so only ssh is given a line for a shell.
        words = [*shell.command, host, _FOUND]
    if not shell.command or not program:
        raise UsageError("-e and --remote-path need a command")
    if any("\0" in word for word in words):
        raise UsageError("the remote shell's command line holds a NUL byte")
    return words
