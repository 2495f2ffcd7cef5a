"""Where a sync reads from or writes to: a path here or on a host reached by a remote shell."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rdc.errors import UsageError

__all__ = ["Location", "RemoteShell", "parse_location"]


@dataclass(frozen=True, slots=True)
class Location:
    host: str | None
    """What the remote shell is given as its destination, `user@` included, IPv6 without brackets; None: this
    machine."""
    path: bytes
    """Never empty. A trailing '/' means the directory's content, as in rsync. On a host, relative to the home
    directory."""

    def __str__(self) -> str:
        path = os.fsdecode(self.path)
        if self.host is None:
            return path
        user, at, name = self.host.rpartition("@")
        return f"{user}{at}[{name}]:{path}" if ":" in name else f"{self.host}:{path}"


@dataclass(frozen=True, slots=True)
class RemoteShell:
    """How the far rdc is started: `command... HOST program serve --stdio`."""

    command: tuple[str, ...] = ("ssh",)
    program: str = "rdc"


def parse_location(text: str) -> Location:
    """Read SRC or DST as rsync does: `[user@]host:path`, `[user@][v6::addr]:path`, or a local path.

    A '/' before the first ':' makes a path local, so `./a:b` names the file `a:b`. An empty path after the
    host is the home directory; so is a leading `~/`, which no shell expands, because the path never passes
    through one.
    Raises UsageError for what can be no location and for the daemon forms, which rdc does not have yet.
    """
    if not text:
        raise UsageError("a location is empty; to sync the current directory, write .")
    if "\0" in text:
        raise UsageError(f"{text}: a location cannot contain a NUL character")
    scheme = text[:8].lower()
    if scheme.startswith(("rdc://", "rsync://")):
        raise UsageError(
            f"{text}: rdc:// and rsync:// are not available yet; use HOST:PATH, which goes through ssh"
        )
    split = _split_host(text)
    if split is None:
        return Location(None, os.fsencode(text))
    host, rest = split
    if rest.startswith(":"):
        raise UsageError(f"{text}: HOST::MODULE is not available yet; use HOST:PATH, which goes through ssh")
    user, at, name = host.rpartition("@")
    if not name or (at and not user):
        raise UsageError(f"{text}: no host name before ':'; a local path with a ':' is written ./{text}")
    # The remote shell would read such a host as an option, and ssh has options that run commands.
    if name.startswith("-") or user.startswith("-"):
        raise UsageError(f"{text}: a host cannot begin with '-'; a local path with a ':' is written ./{text}")
    return Location(host, _remote_path(text, rest))


def _split_host(text: str) -> tuple[str, str] | None:
    """`text` as host and what follows its ':', or None where it is a local path."""
    user, at, rest = text.partition("@")
    if not at or any(ch in user for ch in "/:["):
        user, at, rest = "", "", text
    if rest.startswith("["):
        address, bracket, path = rest[1:].partition("]")
        if not bracket or not path.startswith(":") or any(ch in address for ch in "/@["):
            return None
        return user + at + address, path[1:]
    host, colon, path = text.partition(":")
    if not colon or "/" in host:
        return None
    return host, path


def _remote_path(text: str, path: str) -> bytes:
    if path in ("", "~"):
        return b"."
    if path.startswith("~/"):
        # Relative to home already; './' stays so that the trailing-slash rule sees a directory's content.
        return os.fsencode("./" + path[2:].lstrip("/"))
    if path.startswith("~"):
        raise UsageError(
            f"{text}: rdc does not look up ~USER; write the absolute path (a file named so: HOST:./{path})"
        )
    return os.fsencode(path)
