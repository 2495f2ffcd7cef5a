"""zstd: the C module of python-zstandard by itself.

`import zstandard` first asks platform which Python this is, to choose between C and cffi: with typing and re,
which come with it, that takes each side of a sync 6 ms.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    import zstandard

__all__ = ["zstandard"]

PACKAGE, EXTENSION = "zstandard", "zstandard.backend_c"


def _load() -> ModuleType:
    loaded = sys.modules.get(PACKAGE) or sys.modules.get(EXTENSION)
    if loaded is not None:
        return loaded
    package = PathFinder.find_spec(PACKAGE)
    folders = package and package.submodule_search_locations
    found = PathFinder.find_spec(EXTENSION, folders) if folders else None
    if found is None or found.loader is None:
        import zstandard  # built otherwise, or from elsewhere than a path: it knows how

        return zstandard
    # Under its name, so that whoever imports zstandard later gets these very classes.
    sys.modules[EXTENSION] = module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    zstandard = _load()
