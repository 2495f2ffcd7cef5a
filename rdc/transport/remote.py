"""The command line that starts rdc on another machine."""

from __future__ import annotations

import shlex

from rdc.errors import UsageError

__all__ = ["remote_argv"]


def remote_argv(host: str, shell: str = "ssh", program: str = "rdc") -> list[str]:
    """Words of `shell` (-e), `host`, words of `program` (--remote-path), "serve", "--stdio".

    Both strings are split at blanks with the shell's quoting, but nothing is expanded here. A remote shell
    such as ssh hands the words to the far user's shell, which may expand `program`, as in rsync.
    Raises UsageError for a host that the remote shell would take for an option.
    """
    if not host or host.startswith("-"):
        raise UsageError(f"'{host}' is not a host name")
    if "\0" in host:
        raise UsageError("a host name holds a NUL byte")
    return [*_words("-e", shell), host, *_words("--remote-path", program), "serve", "--stdio"]


def _words(option: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} '{text}': {error}") from error
    if not words:
        raise UsageError(f"{option} is empty")
    if any("\0" in word for word in words):
        raise UsageError(f"{option} holds a NUL byte")
    return words
