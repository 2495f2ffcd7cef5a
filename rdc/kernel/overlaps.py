"""Common elements of sets."""

from __future__ import annotations

from rdc.kernel.sets.reference import set_overlaps

__all__ = ["set_overlaps"]
