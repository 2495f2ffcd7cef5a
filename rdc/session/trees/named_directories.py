"""The gate for directories that an option names beside DST: where temporaries, parts and backups go, and
alternates.

Whoever may write below a directory may name any other one in it by such an option. So each of them passes
here:

1. It lies within what is served. Below that no link is followed.
2. No component stands for a reserved name, in any letter case.
3. It is no directory that only rdc works in, and lies in none, whatever its path says.

What may be done in it is decided by those who work there, by the rights that the session has at DST: nothing
is removed or replaced there but what rdc provably made (rdc/files/FILES.md).
"""

from __future__ import annotations

import os

from rdc.errors import TrustError, UsageError, printable
from rdc.files.base.own_directories import lies_in_own_directory
from rdc.files.base.temporary_names import refused_component

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.session.trees.sites import Site

__all__ = ["check_above", "check_named", "check_opened", "open_named"]


def check_named(option: str, text: bytes) -> None:
    """Raise UsageError if a component of the path `text` that `option` names stands for a reserved name."""
    component = refused_component(text)
    if component is not None:
        raise UsageError(
            f"{option}={printable(text)}: expected a directory of yours, found a name that rdc keeps for"
            f" itself ({printable(component)}); name another one"
        )


def check_opened(option: str, root: Root) -> None:
    """Raise TrustError, and release `root`, if it is a directory that only rdc works in, or lies in one."""
    if lies_in_own_directory(root.fileno()):
        shown = printable(root.label)
        root.release()
        raise TrustError(f"{option}: {shown} lies in a directory that rdc keeps for itself; name another one")


def open_named(
    option: str, directory: bytes, at: bytes, site: Site, *, create: bool = False, writable: bool = False
) -> Root:
    """Open the directory that `option` names, relative to the one at the path `at`. `create`: a missing last
    component is made, with mode 0700. Raises RdcError."""
    check_named(option, directory)
    path = site.beside(at, directory)
    if create:
        check_above(option, path, site)
    root = site.open(path, create=create, writable=writable, mode=0o700)
    check_opened(option, root)
    return root


def check_above(option: str, path: bytes, site: Site) -> None:
    """Raise TrustError if a directory that is made at `path` would lie in one that only rdc works in."""
    while not site.has_directory(path):
        above = os.path.dirname(path.rstrip(b"/")) or b"."
        if above == path:
            return
        path = above
    root = site.open(path)
    check_opened(option, root)
    root.release()
