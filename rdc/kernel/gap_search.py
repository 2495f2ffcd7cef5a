"""The block search of several gaps."""

from __future__ import annotations

from rdc.kernel._kernel import search_gaps

__all__ = ["search_gaps"]
