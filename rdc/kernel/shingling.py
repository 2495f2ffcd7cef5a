# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _shingles.pyi
"""Shingles of texts.

They come from the C extension if it is built, otherwise from shingles/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["shingle_features", "upper_halves"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.shingles._shingles import *
else:
    if choice.is_pure():
        from rdc.kernel.shingles import reference as _module
    else:
        from rdc.kernel import kernel_name
        from rdc.kernel.shingles import _shingles as _module

        _module.choose(kernel_name())
    choice.bind(globals(), _module, __all__)
