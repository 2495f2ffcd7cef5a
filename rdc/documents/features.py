"""The features of texts: hashes of their shingles."""

from __future__ import annotations

import re
from array import array
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SHINGLE_SIZES", "SHINGLE_VERSION", "text_features"]

SHINGLE_VERSION = 1
"""The version of the rules that make shingles of a text."""

SHINGLE_SIZES = {"words": 5, "chars": 8}
"""How many words or characters make a shingle."""


def text_features(text: Buffer, offsets: array[int], unit: str) -> tuple[array[int], array[int]]:
    size = SHINGLE_SIZES[unit]
    view = memoryview(text).cast("B")
    features, ends = array("Q"), array("q", [0])
    for at in range(len(offsets) - 1):
        content = str(view[offsets[at] : offsets[at + 1]], "utf-8").casefold()
        units = re.findall(r"\w+", content) if unit == "words" else list("".join(content.split()))
        for start in range(max(len(units) - size + 1, min(len(units), 1))):
            shingle = "\0".join(units[start : start + size]).encode()
            features.append(int.from_bytes(blake2b(shingle, digest_size=8).digest(), "little"))
        ends.append(len(features))
    return features, ends
