"""A daemon's configuration file: its addresses, its modules with their peers, and its limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from rdc.daemon.access import Access
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.lean.records import Record, replace
from rdc.limits import SIZE_LIMIT, TIMEOUT_SECONDS
from rdc.model.location import DEFAULT_PORT
from rdc.model.options import KeepUndo, parse_keep_undo
from rdc.model.settings import SettingKind, read_settings, setting, settings_of
from rdc.transport.keys import KeyRing, key_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rdc.model.settings import Table

TEXT, TEXTS, FLAG = SettingKind.TEXT, SettingKind.TEXTS, SettingKind.FLAG
NUMBER, SIZE = SettingKind.NUMBER, SettingKind.SIZE

MODULE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

MEMORY_LEAST = 96 << 20
"""Smallest limit of a session's memory in bytes: a session starts with about 40 MB and two windows of 8
MB."""


class Address(Record):
    host: str
    """Host to listen on; empty for all addresses of this machine."""
    port: int
    """Port to listen on; 0 for any free one."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _limit(default: int, least: int, most: int, *, size: bool = False, module: bool = True) -> Any:
    """Return a field of Limits. `size`: it counts bytes. `module`: a module can set it, too."""
    return setting(SIZE if size else NUMBER, default, least=least, most=most, module=module)


class Limits(Record):
    """Limits with their defaults and ranges: the table [limits] of the daemon, and that of a module."""

    connections: int = _limit(64, 1, 4096)
    """Concurrent sessions of the daemon, or of one module. Each is a process with some 20 MB of its own."""
    connections_per_peer: int = _limit(16, 1, 4096, module=False)
    """Concurrent sessions of one key."""
    handshakes: int = _limit(64, 1, 512, module=False)
    """Concurrent connections before authentication."""
    handshake_seconds: int = _limit(10, 1, 600, module=False)
    open_seconds: int = _limit(60, 1, 3600, module=False)
    """Seconds from the handshake until a session has stated its request: filter rules of 256 KiB then need 5
    KB per second."""
    idle_seconds: int = _limit(300, 1, TIMEOUT_SECONDS)
    """Seconds without a byte after which a session ends."""
    session_seconds: int = _limit(86_400, 1, 1 << 31)
    cpu_seconds: int = _limit(3_600, 1, 1 << 31)
    """Processor seconds of one session."""
    memory: int = _limit(512 << 20, MEMORY_LEAST, 1 << 50, size=True)
    """Bytes that one session may allocate."""
    threads: int = _limit(2, 1, 64)
    """Threads of one session that read and hash."""
    decompressed: int = _limit(4 << 40, 1, SIZE_LIMIT, size=True)
    """Decompressed bytes that one session may send in total, content and messages. `cpu_seconds` ends a
    session earlier if it uses what it decodes."""
    written: int = _limit(4 << 40, 1, SIZE_LIMIT, size=True)
    """Bytes that one session may write, plus 4 KiB for each entry."""


class TopSettings(Record):
    """The settings above all tables of the file."""

    listen: tuple[str, ...] = setting(TEXTS, (f":{DEFAULT_PORT}",))
    keys: str | None = setting(TEXT)
    user: str = setting(TEXT, "")
    group: str = setting(TEXT, "")
    log: str = setting(TEXT, "logfmt")
    catalog: str = setting(TEXT, "")


class ModuleSettings(Record):
    """The table [modules.NAME]."""

    path: str = setting(TEXT, required=True)
    allow: tuple[str, ...] = setting(TEXTS, required=True)
    read_only: bool | None = setting(FLAG)
    write_only: bool = setting(FLAG, False)
    no_delete: bool = setting(FLAG, False)
    append_only: bool = setting(FLAG, False)
    owners: bool = setting(FLAG, False)
    keep_undo: str = setting(TEXT, "")


class Module(Record):
    name: str
    path: str
    """Absolute path without symbolic links."""
    allow: frozenset[str]
    """Names of trusted keys."""
    access: Access
    limits: Limits


class DaemonConfig(Record):
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
        """Return the names under which the certificate is trusted; empty for a stranger."""
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
    found = TopSettings(**top.read(settings_of(TopSettings), tables=("limits", "modules")))
    listen = tuple(_address(top, text) for text in found.listen)
    if not listen:
        raise top.error("listen", "at least one address is expected")
    if found.log not in ("logfmt", "json"):
        raise top.error("log", f"expected logfmt or json, found '{found.log}'")
    keys = KeyRing.read(
        key_directory(environ).absolute() if found.keys is None else _beside(path, found.keys)
    )
    limits = Limits(**top.table("limits").read(settings_of(Limits)))
    modules = {name: _module(name, table, keys, limits) for name, table in top.tables("modules")}
    if not modules:
        raise UsageError(f"{path}: no module is defined; expected a table such as [modules.data]")
    catalog = found.catalog
    return DaemonConfig(
        listen=listen,
        keys=keys,
        user=found.user or None,
        group=found.group or None,
        json_log=found.log == "json",
        catalog=str(_beside(path, catalog)) if catalog not in ("", "off") else catalog or None,
        limits=limits,
        modules=modules,
    )


def _beside(file: Path, name: str) -> Path:
    """Return the path of `name`, which is relative to the directory of `file` unless absolute."""
    return file.parent / name


def _address(top: Table, text: str) -> Address:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^\[\]:]*)):(\d{1,5})", text, re.ASCII)
    if found is None or int(found[3]) >= 1 << 16:
        raise top.error("listen", f"expected HOST:PORT, [IPV6]:PORT or :PORT, found '{text}'")
    return Address(found[1] or found[2] or "", int(found[3]))


def _module(name: str, table: Table, keys: KeyRing, limits: Limits) -> Module:
    if MODULE_NAME.fullmatch(name) is None:
        raise table.error("path", f"'{name}' cannot name a module: letters, digits and . _ - are expected")
    found = ModuleSettings(**table.read(settings_of(ModuleSettings), tables=("limits",)))
    path = found.path
    if not os.path.isabs(path):
        raise table.error("path", f"expected an absolute path, found '{path}'")
    real = os.path.realpath(path)
    if os.path.normpath(path).removeprefix("/") != real.removeprefix("/"):
        raise table.error("path", f"{path} goes through a symbolic link; write {real}")
    if not os.path.isdir(real):
        raise table.error("path", f"expected a directory at {path}, found none")
    for peer in found.allow:
        if peer not in keys.trusted:
            raise table.error("allow", f"no key is trusted as '{peer}'; see rdc keys trust")
    writes = found.write_only or found.append_only
    read_only = not writes if found.read_only is None else found.read_only
    if read_only and writes:
        key = "write-only" if found.write_only else "append-only"
        raise table.error(key, f"a module cannot be both read-only and {key}")
    access = Access(
        title=f"module '{name}'",
        read_only=read_only,
        write_only=found.write_only,
        # Deletions list existing names, even in a dry run: a peer that may not read must not see them.
        no_delete=found.no_delete or found.write_only,
        append_only=found.append_only,
        owners=found.owners,
        no_undo=found.keep_undo == "off",
        keep_undo=_keep_undo(table, found),
    )
    return Module(name, real, frozenset(found.allow), access, _module_limits(table.table("limits"), limits))


def _keep_undo(table: Table, found: ModuleSettings) -> KeepUndo | None:
    if found.keep_undo in ("", "off"):
        return None
    if found.append_only:
        raise table.error("keep-undo", "an append-only module replaces nothing, so it keeps nothing")
    try:
        return parse_keep_undo(found.keep_undo)
    except ValueError as error:
        raise table.error("keep-undo", f"found '{found.keep_undo}': {error}, or off") from None


def _module_limits(table: Table, base: Limits) -> Limits:
    """Return the limits of a module, which gets no more than `base`, those of any session."""
    declared = {
        key: replace(each, most=getattr(base, key.replace("-", "_")))
        for key, each in settings_of(Limits).items()
        if each.module
    }
    return replace(base, **table.read(declared, hint=f"; in a module: {', '.join(declared)}"))
