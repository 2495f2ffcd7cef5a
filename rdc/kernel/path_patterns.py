# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _patterns.pyi
"""Paths matched against many wildcard patterns at once.

They come from the C extension if it is built, otherwise from patterns/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = [
    "ABSOLUTE",
    "ANYWHERE",
    "COMPONENTS",
    "DIRECTORY",
    "INSIDE",
    "LITERAL",
    "NEGATED",
    "PatternSet",
    "TAIL",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.patterns._patterns import *
else:
    if choice.is_pure():
        from rdc.kernel.patterns import reference as _module
    else:
        from rdc.kernel.patterns import _patterns as _module
    choice.bind(globals(), _module, __all__)
