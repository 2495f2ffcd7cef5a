"""The search for blocks of gaps: in C where it is built, else as pure_gaps defines it."""

from __future__ import annotations

from rdc.kernel.choice import chosen_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel._kernel import search_gaps
elif chosen_module().kernel_name() == "pure":  # a demand for it is one for all of the kernel
    from rdc.kernel.pure_gaps import search_gaps
else:
    from rdc.kernel._kernel import search_gaps

__all__ = ["search_gaps"]
