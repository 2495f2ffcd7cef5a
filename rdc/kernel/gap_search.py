"""The block search of several gaps.

It comes from the C extension if it is built, otherwise from search/gap_reference.py, which defines it.
"""

from __future__ import annotations

from rdc.kernel.choice import is_pure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel._kernel import search_gaps
elif is_pure():
    from rdc.kernel.search.gap_reference import search_gaps
else:
    from rdc.kernel._kernel import search_gaps

__all__ = ["search_gaps"]
