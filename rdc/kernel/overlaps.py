# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _sets.pyi
"""The resemblance of sets.

They come from the C extension if it is built, otherwise from sets/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["set_resemblances"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.sets._sets import *
else:
    if choice.is_pure():
        from rdc.kernel.sets import reference as _module
    else:
        from rdc.kernel.sets import _sets as _module
    choice.bind(globals(), _module, __all__)
