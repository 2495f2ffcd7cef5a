# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _survey.pyi
"""The tables of a scan.

They come from the C extension if it is built, otherwise from count/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["ChunkTable", "Folder", "left_after_rows", "select_chunks"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.count._survey import *
else:
    if choice.is_pure():
        from rdc.kernel.count import reference as _module
    else:
        from rdc.kernel.count import _survey as _module
    choice.bind(globals(), _module, __all__)
