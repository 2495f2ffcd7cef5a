"""What holds for the tests of this folder."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def descriptors() -> Iterator[None]:
    """Close what broken sessions of a module left open in cycles: nothing else collects them here."""
    yield
    gc.collect()
