"""Shingles of texts."""

from __future__ import annotations

from rdc.kernel import kernel_name
from rdc.kernel.shingles._shingles import choose, shingle_features, upper_halves

__all__ = ["shingle_features", "upper_halves"]

choose(kernel_name())
