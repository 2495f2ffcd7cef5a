"""The share of the random and repeated work that a run of the tests does: a fifth, or all of it.

scripts/soak tests sets RDC_TESTS=all. Without it, a run takes a fifth of the examples and of the repetitions.
Of a test marked `sampled(N)` a run has one of N of its parameters, and the commit says which: the next
commits have the others. scripts/test also draws hypothesis's examples by the commit, so that a failure can be
repeated.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import pytest

from tests.support.project_paths import TOP

__all__ = ["commit_number", "examples", "sampled_out", "share"]

ALL = os.environ.get("RDC_TESTS") == "all"
SHARE = 5

T = TypeVar("T")


def examples(number: int) -> int:
    """The examples of a test that has `number` in a whole run."""
    return number if ALL else max(number // SHARE, 1)


def share(items: Sequence[T], of: int = SHARE) -> Sequence[T]:
    """One of `of` items, the first included."""
    return items if ALL else items[::of]


def sampled_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests marked `sampled` that this run leaves to others."""
    if ALL:
        return
    turn = commit_number()
    seen: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None:
            test = item.nodeid.partition("[")[0]
            number = seen[test] = seen.get(test, -1) + 1
            if (number - turn) % int(mark.args[0]):
                yield item


def commit_number() -> int:
    """A number that the commit decides; without git always the same."""
    if shutil.which("git") is None:
        return 0
    words = ["git", "-C", str(TOP), "rev-parse", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return int(done.stdout.strip() or "0", 16)
