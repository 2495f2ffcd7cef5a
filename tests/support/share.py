"""How much of the random and repeated work a run of the tests does: a share, or all of it.

scripts/soak tests sets RDC_TESTS=all. Without it, a run takes a fifth of the examples and of the repetitions.
The examples that hypothesis draws are others in each run, so the share moves.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["examples", "share"]

ALL = os.environ.get("RDC_TESTS") == "all"
SHARE = 5

T = TypeVar("T")


def examples(number: int) -> int:
    """The examples of a test that has `number` in a whole run."""
    return number if ALL else max(number // SHARE, 1)


def share(items: Sequence[T], of: int = SHARE) -> Sequence[T]:
    """One of `of` items, the first included."""
    return items if ALL else items[::of]
