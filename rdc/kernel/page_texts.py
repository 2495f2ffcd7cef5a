# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _pages.pyi
"""The text of HTML pages.

It comes from the C extension if it is built, otherwise from pages/reference.py, which defines it.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["html_texts"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.pages._pages import *
else:
    if choice.is_pure():
        from rdc.kernel.pages import reference as _module
    else:
        from rdc.kernel.pages import _pages as _module
    choice.bind(globals(), _module, __all__)
