"""`serve`: from a configuration file to a running daemon."""

from __future__ import annotations

import ctypes
import grp
import importlib
import os
import pkgutil
import pwd
import resource
from collections.abc import Mapping
from pathlib import Path

from rdc.daemon.config import read_config
from rdc.daemon.log import Log, hold_standard_streams
from rdc.errors import ExitCode, UsageError
from rdc.transport.keys import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.session.serve import Following, Meeting


# Dropping root: a daemon that a network reaches needs only the rights to its modules.

# linux/prctl.h and linux/capability.h
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITY_WORDS = 6


def check_root(user: str | None, *, allow_root: bool) -> None:
    """UsageError if this process is root and no setting names another user."""
    if os.geteuid() == 0 and user is None and not allow_root:
        raise UsageError(
            'rdc serve does not stay root by accident: set user = "NAME" in the configuration,'
            " or give --allow-root"
        )


def drop_privileges(user: str | None, group: str | None) -> None:
    """Become `user` for good, with its groups or with `group` alone. Raises UsageError."""
    if user is None:
        if group is not None:
            raise UsageError(f'group = "{group}" needs user = "NAME" beside it')
        return
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise UsageError(f'user = "{user}": there is no such user') from None
    try:
        gid = entry.pw_gid if group is None else grp.getgrnam(group).gr_gid
    except KeyError:
        raise UsageError(f'group = "{group}": there is no such group') from None
    if os.geteuid() == entry.pw_uid and os.getegid() == gid:
        return
    if os.geteuid() != 0:
        raise UsageError(f'user = "{user}": only root can become another user; leave it out')
    try:
        os.initgroups(user, gid) if group is None else os.setgroups([gid])
        os.setresgid(gid, gid, gid)
        os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    except OSError as error:
        raise UsageError(f'user = "{user}": cannot become this user: {error.strerror}') from error
    # Caches and configuration are the user's, not root's.
    os.environ["HOME"] = entry.pw_dir
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ.pop(name, None)


def confine() -> None:
    """Confine the daemon and all its sessions, whatever its user. Raises UsageError.

    It has no capability unless it is root, and no program gives it rights. Others may not write its files
    because of the umask. Its working directory prevents no unmount.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # A kernel that does not know these has no such rights to drop.
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() != 0:
        # The capability may have served to bind a port, which is done.
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        libc.capset(header, (ctypes.c_uint32 * _CAPABILITY_WORDS)())
    os.umask(os.umask(0o077) | 0o022)
    try:
        os.chdir("/")
    except OSError as error:
        raise UsageError(
            f"cannot enter / as the daemon's user: {error.strerror}; it needs mode 0755"
        ) from error


def forbid_core_dumps() -> None:
    """Forbid core dumps: a core file would hold the private key."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


_PACKAGES = (
    "rdc.catalog",
    "rdc.files",
    "rdc.protocol",
    "rdc.session",
    "rdc.signature",
    "rdc.similarity",
    "rdc.tree",
)

_LATE = (
    "_strptime",
    "calendar",
    "difflib",
    "mmap",
    "re",
    "shlex",
    "sqlite3",
    "tempfile",
    "traceback",
)


def serve(
    path: Path,
    environ: Mapping[str, str],
    *,
    allow_root: bool = False,
    announce: Callable[[str], None] = lambda _: None,
    following: Following | None = None,
    meeting: Meeting | None = None,
) -> ExitCode:
    """Serve as `path` says until a signal.

    following: follows a directory for a peer. meeting: brings a directory together with a peer's. announce:
    receives each listening address with its true port.
    RdcError, one line, for anything that prevents the start; later trouble goes to the log.
    """
    hold_standard_streams()
    # SIGHUP reads the file again, from another working directory and perhaps as another user.
    path = path.absolute()
    config = read_config(path, environ)
    later = {**environ, VARIABLE: str(config.keys.directory)}
    check_root(config.user, allow_root=allow_root)
    forbid_core_dumps()

    from rdc.daemon.arrivals import address_of, bind
    from rdc.daemon.server import Server

    listeners = bind(config.listen)
    log = Log(as_json=config.json_log)
    _load_all()
    server = Server(config, lambda: read_config(path, later), listeners, log, following, meeting)
    drop_privileges(config.user, config.group)
    confine()

    def ready() -> None:
        for listener in listeners:
            address = address_of(listener.getsockname()[:2])
            log(
                "info",
                "listening",
                address=str(address),
                modules=len(config.modules),
                pin=config.keys.own.pin,
            )
            announce(str(address))

    return server.run(ready)


def _load_all() -> None:
    """Import the modules that a session may import late. A session's process is a copy of this one, so they
    cost it nothing. The daemon's user may not be able to read the program's files."""
    for package in _PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
