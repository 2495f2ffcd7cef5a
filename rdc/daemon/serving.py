"""`serve`: from a configuration file to a running daemon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rdc.daemon.config import read_config
from rdc.daemon.log import Log
from rdc.daemon.privileges import check_root, drop_privileges, forbid_core_dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.errors import ExitCode

__all__ = ["serve"]


def serve(
    path: Path,
    environ: Mapping[str, str],
    *,
    allow_root: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> ExitCode:
    """Serves as `path` says until a signal ends it.

    `announce`: takes each address that is listened on, with its true port. Raises RdcError, one line, for
    whatever keeps the daemon from starting; once it runs, trouble goes to the log.
    """
    config = read_config(path, environ)
    check_root(config.user, allow_root=allow_root)
    forbid_core_dumps()

    from rdc.daemon.server import Server, address_of, bind

    listeners = bind(config.listen)
    log = Log(as_json=config.json_log)
    # The sessions' processes have all of this process, so whatever they need is loaded before.
    import rdc.catalog.catalog  # noqa: F401

    server = Server(config, lambda: read_config(path, os.environ), listeners, log)
    drop_privileges(config.user, config.group)
    for listener in listeners:
        address = address_of(listener.getsockname()[:2])
        log("info", "listening", address=str(address), modules=len(config.modules), pin=config.keys.own.pin)
        announce(str(address))
    return server.run()
