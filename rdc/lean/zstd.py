"""The zstandard package without its __init__, which costs 6.5 ms per start.

The __init__ asks `platform` for the Python implementation and `typing` for one name: 4 ms, and 2.5 ms for the
regular expressions that both need. On CPython it then takes all its names from a backend, which this module
loads alone. Without that backend, and for a type checker, `zstandard` is the whole package.
"""

from __future__ import annotations

import sys

__all__ = ["zstandard"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import zstandard
else:

    def _found(name, locations):
        specs = (
            finder.find_spec(name, locations) for finder in sys.meta_path if hasattr(finder, "find_spec")
        )
        return next((spec for spec in specs if spec is not None), None)

    def _backend():
        package = _found("zstandard", None)
        backend = package and _found("zstandard.backend_c", package.submodule_search_locations)
        if backend is None or "zstandard" in sys.modules:
            import zstandard

            return zstandard
        module = backend.loader.create_module(backend)
        backend.loader.exec_module(module)
        return module

    zstandard = _backend()
