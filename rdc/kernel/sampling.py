# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _samples.pyi
"""Min-wise samples of sets.

They come from the C extension if it is built, otherwise from samples/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

__all__ = ["minimum_samples", "partition_samples", "sample_matches"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.samples._samples import *
else:
    if choice.is_pure():
        from rdc.kernel.samples import reference as _module
    else:
        from rdc.kernel import kernel_name
        from rdc.kernel.samples import _samples as _module

        _module.choose(kernel_name())
    choice.bind(globals(), _module, __all__)
