"""Known inputs and their cuts and traits: these must not change without a new parameter version."""

from __future__ import annotations

import pytest

from rdc.kernel import _kernel
from tests.reference import kernel as pure
from tests.support.kernel.kernel_streams import run
from tests.support.kernel.kernel_vectors import VECTORS, Vector


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v.input} {v.length} {v.min}-{v.max}")
def test_vectors(vector: Vector) -> None:
    data = vector.data()
    sizes = vector.min, vector.max
    expected = vector.cuts, bytes.fromhex(vector.traits)
    assert run(pure.Cutter(*sizes), data) == expected
    for variant in _kernel.usable():
        assert run(_kernel.Cutter(*sizes, variant=variant), data) == expected
