"""`serve`: from a configuration file to a running daemon."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path

from rdc.daemon.config import read_config
from rdc.daemon.log import Log
from rdc.daemon.log_stream import hold_standard_streams
from rdc.daemon.privileges import check_root, confine, drop_privileges, forbid_core_dumps
from rdc.transport.keys import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.errors import ExitCode
    from rdc.session.serve import Following

__all__ = ["serve"]

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
) -> ExitCode:
    """Serve as `path` says until a signal.

    following: follows a directory for a peer. announce: receives each listening address with its true port.
    RdcError, one line, for anything that prevents the start; later trouble goes to the log.
    """
    hold_standard_streams()
    # SIGHUP reads the file again, from another working directory and perhaps as another user.
    path = path.absolute()
    config = read_config(path, environ)
    later = {**environ, VARIABLE: str(config.keys.directory)}
    check_root(config.user, allow_root=allow_root)
    forbid_core_dumps()

    from rdc.daemon.listening import address_of, bind
    from rdc.daemon.server import Server

    listeners = bind(config.listen)
    log = Log(as_json=config.json_log)
    _load_all()
    server = Server(config, lambda: read_config(path, later), listeners, log, following)
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
