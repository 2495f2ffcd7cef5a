"""The module that a peer asks for, and its rights there."""

from __future__ import annotations

import os
from functools import partial

from rdc.errors import TrustError, UsageError, printable
from rdc.files.base.write_quota import WriteQuota
from rdc.records import replace
from rdc.session.access import granted_options
from rdc.session.serve import Admitted
from rdc.session.served_directory import ServedDirectory, open_served

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.daemon.config import Module
    from rdc.protocol.messages import Open

__all__ = ["admit", "requested_module"]


def requested_module(open_: Open, modules: Mapping[str, Module], names: frozenset[str]) -> Module:
    """The module that an Open names, if a peer trusted as `names` may use it.

    TrustError gives the same answer for a missing module and a forbidden one, so a peer learns no names.
    """
    name, _, _ = open_.path.partition(b"/")
    module = modules.get(os.fsdecode(name))
    if module is None or not module.allow & names:
        raise TrustError(f"there is no module '{printable(name)}' for this key")
    return module


def admit(open_: Open, module: Module) -> Admitted:
    """What a peer of `module` gets. TrustError for what the module forbids.

    The module's directory is opened anew for each use. Otherwise an open session would prevent its unmount,
    and would continue in a file system that another one has replaced.
    """
    access = module.access
    options = granted_options(open_, access)
    idle = module.limits.idle_seconds
    if options.timeout > idle:
        raise UsageError(
            f"{access.title} gives up after {idle} seconds of silence: --timeout={idle} is the most it takes"
        )
    site = ServedDirectory(
        partial(open_served, os.fsencode(module.path), access.title),
        access,
        os.fsencode(module.name),
        WriteQuota(module.limits.written),
    )
    _, _, path = open_.path.partition(b"/")
    options = replace(options, timeout=options.timeout or idle)
    return Admitted(site, path, options, uses_content=not access.write_only)
