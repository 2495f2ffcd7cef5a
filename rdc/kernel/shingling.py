# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _shingles.pyi
"""Features of texts: shingles, bigrams of URLs, and the text of HTML pages.

Features come from the C extension if it is built, otherwise from shingles/reference.py, which defines them.
Texts of pages come from shingles/html_reference.py.
"""

from __future__ import annotations

from rdc.kernel import choice
from rdc.kernel.shingles.html_reference import html_texts

__all__ = ["html_texts", "shingle_features", "url_features"]

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
    choice.bind(globals(), _module, ["shingle_features", "url_features"])
