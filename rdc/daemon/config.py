"""A daemon's configuration file: its addresses, its modules with their peers, and its limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits.sessions import TIMEOUT_SECONDS
from rdc.limits.wire import SIZE_LIMIT
from rdc.model.location import DEFAULT_PORT
from rdc.model.option_values import parse_keep_undo
from rdc.model.settings import read_settings
from rdc.model.sync import KeepUndo
from rdc.records import dataclass, replace
from rdc.session.access import Access
from rdc.transport.keys import KeyRing, key_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.settings import Table

__all__ = ["Address", "DaemonConfig", "Limits", "Module", "read_config"]

MODULE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

MEMORY_LEAST = 96 << 20
"""Smallest limit of a session's memory in bytes: a session starts with about 40 MB and two windows of 8
MB."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    """Host to listen on; empty for all addresses of this machine."""
    port: int
    """Port to listen on; 0 for any free one."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits with their defaults."""

    connections: int = 64
    """Concurrent sessions of the daemon, or of one module. Each is a process with some 20 MB of its own."""
    connections_per_peer: int = 16
    """Concurrent sessions of one key."""
    handshakes: int = 64
    """Concurrent connections before authentication."""
    handshake_seconds: int = 10
    open_seconds: int = 60
    """Seconds from the handshake until a session has stated its request: filter rules of 256 KiB then need 5
    KB per second."""
    idle_seconds: int = 300
    """Seconds without a byte after which a session ends."""
    session_seconds: int = 86_400
    cpu_seconds: int = 3_600
    """Processor seconds of one session."""
    memory: int = 512 << 20
    """Bytes that one session may allocate."""
    threads: int = 2
    """Threads of one session that read and hash."""
    decompressed: int = 4 << 40
    """Decompressed bytes that one session may send in all, content and messages. `cpu_seconds` ends a session
    earlier if it uses what it decodes."""
    written: int = 4 << 40
    """Bytes that one session may write, plus 4 KiB for each entry."""


@dataclass(frozen=True, slots=True)
class _Range:
    """The values that a limit can have."""

    least: int
    most: int
    size: bool = False
    """Whether it counts bytes, so that text such as "512M" is allowed."""
    module: bool = True
    """Whether a module can set it, too."""


_RANGES = {
    "connections": _Range(1, 4096),
    "connections_per_peer": _Range(1, 4096, module=False),
    "handshakes": _Range(1, 512, module=False),
    "handshake_seconds": _Range(1, 600, module=False),
    "open_seconds": _Range(1, 3600, module=False),
    "idle_seconds": _Range(1, TIMEOUT_SECONDS),
    "session_seconds": _Range(1, 1 << 31),
    "cpu_seconds": _Range(1, 1 << 31),
    "memory": _Range(MEMORY_LEAST, 1 << 50, size=True),
    "threads": _Range(1, 64),
    "decompressed": _Range(1, SIZE_LIMIT, size=True),
    "written": _Range(1, SIZE_LIMIT, size=True),
}
"""The range of each field of Limits. A key is the field's name with hyphens."""


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    path: str
    """Absolute path without symbolic links."""
    allow: frozenset[str]
    """Names of trusted keys."""
    read_only: bool
    write_only: bool
    no_delete: bool
    append_only: bool
    owners: bool
    """Whether the peer sets owners and groups, which needs a daemon that runs as root."""
    limits: Limits
    no_undo: bool = False
    """Whether no sync of a peer is kept to be undone."""
    keep_undo: KeepUndo | None = None
    """How much every sync keeps to be undone; None: as the peer asks."""

    @property
    def access(self) -> Access:
        """The rights of a peer in this module."""
        return Access(
            title=f"module '{self.name}'",
            read_only=self.read_only,
            write_only=self.write_only,
            no_delete=self.no_delete,
            append_only=self.append_only,
            owners=self.owners,
            no_undo=self.no_undo,
            keep_undo=self.keep_undo,
        )


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    listen: tuple[Address, ...]
    keys: KeyRing
    user: str | None
    group: str | None
    json_log: bool
    catalog: str | None
    """A directory, or "off"; None for the default of the daemon's user."""
    limits: Limits
    modules: Mapping[str, Module]

    def names_of(self, pin: str) -> frozenset[str]:
        """The names under which the certificate is trusted; empty for a stranger."""
        return frozenset(
            name for name, known in self.keys.trusted.items() if any(each.pin == pin for each in known)
        )

    @property
    def overlaps(self) -> list[str]:
        """A line for each pair of modules of which one contains the other: a peer that may write to one
        writes to both, whatever the other's settings say."""
        modules = sorted(self.modules.values(), key=lambda module: module.path)
        return [
            f"module '{inner.name}' lies in module '{outer.name}' ({outer.path}): what one of them allows, it"
            " allows in the other"
            for number, outer in enumerate(modules)
            for inner in modules[number + 1 :]
            if inner.path == outer.path or inner.path.startswith(outer.path.rstrip("/") + "/")
        ]


def read_config(path: Path, environ: Mapping[str, str]) -> DaemonConfig:
    """Read the file and the keys it names. RdcError, one line, for every mistake in them."""
    try:
        return _read(path, environ)
    except RdcError:
        raise
    except OSError as error:
        raise RdcError(
            f"{path}: cannot read what it names: {error.strerror or error}", code=ExitCode.FILE_IO
        ) from error
    except Exception as error:  # the user's paths and keys may be refused in ways that nobody foresaw
        raise UsageError(f"{path}: cannot be used: {type(error).__name__}: {str(error)[:200]}") from error


def _read(path: Path, environ: Mapping[str, str]) -> DaemonConfig:
    top = read_settings(path)
    if top is None:
        raise UsageError(f"{path}: there is no such file")
    listen = tuple(_address(top, text) for text in top.texts("listen", (f":{DEFAULT_PORT}",)))
    if not listen:
        raise top.error("listen", "at least one address is expected")
    log = top.text("log", "logfmt")
    if log not in ("logfmt", "json"):
        raise top.error("log", f"expected logfmt or json, found '{log}'")
    keys = KeyRing.read(
        _beside(path, top.text("keys")) if "keys" in top else key_directory(environ).absolute()
    )
    catalog = top.text("catalog", "")
    limits = _limits(top.table("limits"), Limits(), module=False)
    modules = {name: _module(name, table, keys, limits) for name, table in top.tables("modules")}
    if not modules:
        raise UsageError(f"{path}: no module is defined; expected a table such as [modules.data]")
    config = DaemonConfig(
        listen=listen,
        keys=keys,
        user=top.text("user", "") or None,
        group=top.text("group", "") or None,
        json_log=log == "json",
        catalog=str(_beside(path, catalog)) if catalog not in ("", "off") else catalog or None,
        limits=limits,
        modules=modules,
    )
    top.finish()
    return config


def _beside(file: Path, name: str) -> Path:
    """The path of `name`, which is relative to the directory of `file` unless absolute."""
    return file.parent / name


def _address(top: Table, text: str) -> Address:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\[\]:]*)):(\d{1,5})", text, re.ASCII)
    if found is None or int(found[3]) >= 1 << 16:
        raise top.error("listen", f"expected HOST:PORT, [IPV6]:PORT or :PORT, found '{text}'")
    return Address(found[1] or found[2] or "", int(found[3]))


def _module(name: str, table: Table, keys: KeyRing, limits: Limits) -> Module:
    if MODULE_NAME.fullmatch(name) is None:
        raise table.error("path", f"'{name}' cannot name a module: letters, digits and . _ - are expected")
    path = table.text("path")
    if not os.path.isabs(path):
        raise table.error("path", f"expected an absolute path, found '{path}'")
    real = os.path.realpath(path)
    if os.path.normpath(path).removeprefix("/") != real.removeprefix("/"):
        raise table.error("path", f"{path} goes through a symbolic link; write {real}")
    if not os.path.isdir(real):
        raise table.error("path", f"expected a directory at {path}, found none")
    allow = table.texts("allow")
    for peer in allow:
        if peer not in keys.trusted:
            raise table.error("allow", f"no key is trusted as '{peer}'; see rdc keys trust")
    write_only = table.flag("write-only", False)
    append_only = table.flag("append-only", False)
    read_only = table.flag("read-only", not (write_only or append_only))
    for setting, other in (("write-only", write_only), ("append-only", append_only)):
        if read_only and other:
            raise table.error(setting, f"a module cannot be both read-only and {setting}")
    module = Module(
        name=name,
        path=real,
        allow=frozenset(allow),
        read_only=read_only,
        write_only=write_only,
        # Deletions list existing names, even in a dry run: a peer that may not read must not see them.
        no_delete=table.flag("no-delete", False) or write_only,
        append_only=append_only,
        no_undo=table.text("keep-undo", "") == "off",
        keep_undo=_keep_undo(table, append_only=append_only),
        owners=table.flag("owners", False),
        limits=_limits(table.table("limits"), limits, module=True),
    )
    table.finish()
    return module


def _keep_undo(table: Table, *, append_only: bool) -> KeepUndo | None:
    text = table.text("keep-undo", "")
    if text in ("", "off"):
        return None
    if append_only:
        raise table.error("keep-undo", "an append-only module replaces nothing, so it keeps nothing")
    try:
        return parse_keep_undo(text)
    except ValueError as error:
        raise table.error("keep-undo", f"found '{text}': {error}, or off") from None


def _limits(table: Table, base: Limits, *, module: bool) -> Limits:
    """The limits of the daemon, or of one `module`, which gets no more than `base`, those of any session."""
    found: dict[str, int] = {}
    for name, allowed in _RANGES.items():
        if allowed.module or not module:
            key, default = name.replace("_", "-"), getattr(base, name)
            read = table.size if allowed.size else table.number
            most = default if module else allowed.most
            found[name] = read(key, default, least=allowed.least, most=most)
    keys = ", ".join(name.replace("_", "-") for name in found)
    table.finish(f"; in a module: {keys}" if module else "")
    return replace(base, **found)
