# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _lines.pyi
"""Texts of JSON lines.

They come from the C extension if it is built, otherwise from lines/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["json_texts"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.lines._lines import *
else:
    if choice.is_pure():
        from rdc.kernel.lines import reference as _module
    else:
        from rdc.kernel.lines import _lines as _module
    choice.bind(globals(), _module, __all__)
