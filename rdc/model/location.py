"""The source or destination of a sync: a local path, a path on a host by remote shell, or a daemon's
module; and a list of paths that the remote side has.
"""

from __future__ import annotations

import os
import sys

from rdc.errors import UsageError
from rdc.lean.records import Record
from rdc.model.options import check_path, check_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


DEFAULT_PORT = 8730
"""Default TCP port of a daemon. No port is registered for it; rsync's is 873."""


class Location(Record):
    """A directory or file, here or on another host. Raises TypeError for a wrong type.

    >>> import rdc
    >>> str(rdc.Location("me@host", b"backup/"))
    'me@host:backup/'
    """

    host: str | None
    """Destination argument of the remote shell, with `user@`, IPv6 without brackets; None for this
    machine."""
    path: bytes
    """Never empty. A trailing '/' means the directory's content, as in rsync. On a host it is relative to the
    home directory; for a daemon it is MODULE or MODULE/PATH."""
    port: int | None = None
    """TCP port of a daemon on `host`; None if a remote shell reaches `host`."""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def inner(self) -> bytes:
        """The path as its side takes it: for a daemon, the path below the module."""
        return self.path if self.port is None else self.path.partition(b"/")[2]

    def __str__(self) -> str:
        path = os.fsdecode(self.path)
        if self.host is None:
            return path
        if self.port is not None:
            host = f"[{self.host}]" if ":" in self.host else self.host
            port = "" if self.port == DEFAULT_PORT else f":{self.port}"
            return f"rdc://{host}{port}/{path}"
        user, at, name = self.host.rpartition("@")
        return f"{user}{at}[{name}]:{path}" if ":" in name else f"{self.host}:{path}"


class FarList(Record):
    """A file at the remote side that lists paths below the source, as `--files-from=:FILE` names it.

    >>> import rdc
    >>> rdc.SyncOptions(files_from=rdc.FarList(b"lists/today", nul=True)).files_from.path
    b'lists/today'
    """

    path: bytes
    """The path as the remote side's user would write it; in a module of a daemon, below the module."""
    nul: bool = False
    """True if NUL ends each path, not a line."""
    relative: bool = False
    """`relative` of the options that it belongs to, which `rdc.sync` puts here for the remote side."""

    def __post_init__(self) -> None:
        check_types(self)
        check_path("FarList.path", self.path)


class RemoteShell(Record):
    """The command that starts the far rdc: `command... HOST program serve --stdio`.

    >>> import rdc
    >>> rdc.RemoteShell(("ssh", "-p", "2222")).program
    'rdc'
    """

    command: tuple[str, ...] = ("ssh",)
    program: str = "rdc"

    def __post_init__(self) -> None:
        check_types(self)


def is_web(path: bytes) -> bool:
    """Return whether a path is an address of the web: of a published store, which only a sync reads."""
    return path[:8].lower().startswith((b"http://", b"https://"))


def parse_location(text: str, *, published: bool = False) -> Location:
    """Read SRC or DST as rsync does: `[user@]host:path`, `[user@][v6::addr]:path`, or a local path.
    `rdc://host[:port]/module[/path]` names a daemon, without percent-encoding.

    A '/' before the first ':' makes a path local, so `./a:b` names the file `a:b`. An empty path after the
    host is the home directory. So is a leading `~/`, which no shell expands, since the path never passes
    through one. `published`: the address of a published store is a location, too. UsageError for an invalid
    location, for rsync's daemon forms and for other URLs.

        >>> import rdc
        >>> rdc.parse_location("me@host:backup/").host
        'me@host'
    """
    from rdc.lean.checks import check_argument

    check_argument("parse_location", "text", text, str)
    if not text:
        raise UsageError("a location is empty; to sync the current directory, write .")
    if "\0" in text:
        raise UsageError(f"{text}: a location cannot contain a NUL character")
    scheme = text[:8].lower()
    if scheme.startswith("rdc://"):
        return _daemon(text)
    shown = _without_password(text)
    if scheme.startswith("rsync://"):
        raise UsageError(
            f"{shown}: rdc does not speak rsync's protocol; a daemon of its own is rdc://HOST/MODULE"
        )
    if scheme.startswith(("ssh://", "sftp://")):
        raise UsageError(
            f"{shown}: a place that ssh leads to is written HOST:PATH; a port goes to -e 'ssh -p N'"
        )
    if is_web(os.fsencode(text)):
        if published:
            return Location(None, os.fsencode(text))
        address = shown.rstrip("/") + ("/" if "/@" in shown else "/@latest/")
        raise UsageError(f"{shown}: only rdc sync reads a store from the web, as SRC: rdc sync {address} DST")
    _refuse_scheme(shown)
    split = _split_host(text)
    if split is None:
        return Location(None, os.fsencode(text))
    host, rest = split
    if rest.startswith(":"):
        raise UsageError(f"{text}: HOST::MODULE is rsync's daemon; write rdc://HOST/MODULE for rdc's")
    user, at, name = host.rpartition("@")
    if not name or (at and not user):
        raise UsageError(f"{text}: no host name before ':'; a local path with a ':' is written ./{text}")
    # The remote shell would read such a host as an option, and ssh has options that run commands.
    if name.startswith("-") or user.startswith("-"):
        raise UsageError(f"{text}: a host cannot begin with '-'; a local path with a ':' is written ./{text}")
    return Location(host, _remote_path(text, rest))


def _without_password(text: str) -> str:
    """Return a URL as messages show it, without the password of USER:PASSWORD@HOST: logs keep messages."""
    scheme, mark, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    name, colon, _ = user.partition(":")
    return f"{scheme}{mark}{name}:...{at}{host}{slash}{path}" if mark and colon else text


def _refuse_scheme(text: str) -> None:
    """Raise UsageError for a URL such as `s3://bucket/x`, which would dial a host named `s3`, and for
    `rdc:/`, a daemon with a slash too few."""
    scheme, _, rest = text.partition(":")
    if scheme.lower() == "rdc" and rest.startswith("/"):
        raise UsageError(
            f"{text}: a daemon is written rdc://HOST/MODULE/PATH, and a path on a host named rdc USER@{text}"
        )
    letters = scheme.replace("+", "").replace("-", "").replace(".", "")
    if rest.startswith("//") and letters.isascii() and letters.isalnum():
        raise UsageError(
            f"{text}: rdc knows no {scheme}://; a place is PATH, HOST:PATH or rdc://HOST/MODULE/PATH"
            f" (a path on a host named so: {scheme}:/{rest.lstrip('/')})"
        )


def _daemon(text: str) -> Location:
    authority, _, path = text[len("rdc://") :].partition("/")
    if "@" in authority:
        raise UsageError(f"{_without_password(text)}: rdc:// takes no user; the key says who you are")
    host, colon, port = _host_and_port(text, authority)
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    if colon and not 0 < number < 1 << 16:
        raise UsageError(f"{text}: expected a port from 1 to 65535, found '{port}'")
    if not path.partition("/")[0]:
        raise UsageError(f"{text}: a module is needed: rdc://{authority}/MODULE/PATH")
    return Location(host, os.fsencode(path), number if colon else DEFAULT_PORT)


def _host_and_port(text: str, authority: str) -> tuple[str, str, str]:
    """Host, ':' or "", and port of HOST[:PORT] or [IPV6][:PORT]. UsageError names `text`."""
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        good = bool(bracket) and colon in ("", ":")
    else:
        host, colon, port = authority.partition(":")
        good = True
    if not good or not host or host.startswith("-") or any(ch in host for ch in "[]"):
        raise UsageError(f"{text}: expected rdc://HOST[:PORT]/MODULE/PATH (IPv6 in brackets)")
    return host, colon, port


def _split_host(text: str) -> tuple[str, str] | None:
    """Return the host of `text` and the rest after its ':', or None for a local path."""
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
        # The path is already relative to home. './' stays, so the trailing-slash rule sees a directory's
        # content.
        return os.fsencode("./" + path[2:].lstrip("/"))
    if path.startswith("~"):
        raise UsageError(
            f"{text}: rdc does not look up ~USER; write the absolute path (a file named so: HOST:./{path})"
        )
    return os.fsencode(path)


# The directories of rdc's own files, by the XDG base directory specification.
#
# https://specifications.freedesktop.org/basedir; macOS has its own places if no variable is set.


def config_directory(environ: Mapping[str, str]) -> str | None:
    """$XDG_CONFIG_HOME/rdc, or $HOME/.config/rdc; None if neither is set."""
    # Never the home of the password file: under another user's rights, settings must not come from an
    # unrequested home.
    return _chosen(environ, "XDG_CONFIG_HOME") or _below(environ.get("HOME", ""), ".config")


def cache_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory of data that can be rebuilt: $XDG_CACHE_HOME/rdc, or .cache/rdc at home; None
    without a home."""
    subdirectory = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return _chosen(environ, "XDG_CACHE_HOME") or _below(_home(environ), subdirectory)


def state_directory(environ: Mapping[str, str]) -> str | None:
    """Return the directory of data that outlasts a run: $XDG_STATE_HOME/rdc, or $HOME/.local/state/rdc; None
    if neither is set."""
    subdirectory = "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    return _chosen(environ, "XDG_STATE_HOME") or _below(environ.get("HOME", ""), subdirectory)


def _chosen(environ: Mapping[str, str], variable: str) -> str | None:
    """Return the variable's directory. A relative path is ignored, as specified."""
    return _below(environ.get(variable, ""), "")


def _below(base: str, subdirectory: str) -> str | None:
    return os.path.join(base, subdirectory, "rdc") if os.path.isabs(base) else None


def _home(environ: Mapping[str, str]) -> str:
    """HOME, or the home in the password file; "" without either."""
    home = environ.get("HOME")
    if home is None:
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            home = ""
    return home
