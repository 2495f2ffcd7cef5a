"""The features of texts: their shingles, of a size that all parts share."""

from __future__ import annotations

from rdc.similarity.texts import shingles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

    from rdc.similarity.texts import FeatureColumn

__all__ = ["SHINGLE_SIZES", "SHINGLE_VERSION", "text_features"]

SHINGLE_VERSION = 1
"""Version of the rules in tests/reference/shingles.py. One search compares features of one version."""

SHINGLE_SIZES = {"words": 5, "chars": 8}
"""How many words or characters make a shingle."""


def text_features(text: Buffer, offsets: Buffer, unit: str) -> FeatureColumn:
    """The features of each text of a column. `unit`: a key of SHINGLE_SIZES."""
    return shingles(text, offsets, SHINGLE_SIZES[unit], unit="chars" if unit == "chars" else "words")
