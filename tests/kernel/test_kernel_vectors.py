"""Known inputs and their cuts and traits: these must not change without a new parameter version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from rdc.kernel import _kernel
from rdc.kernel import reference as pure
from rdc.kernel.constants import mix
from tests.support.kernel.kernel_streams import run
from tests.support.project_paths import TOP

VECTORS: list[dict[str, Any]] = json.loads((TOP / "fixtures" / "kernel" / "vectors.json").read_text())[
    "vectors"
]


def mixed(length: int) -> bytes:
    """The 64-bit words mix(0), mix(1), ... of FORMAT.md, little-endian."""
    return b"".join(mix(i).to_bytes(8, "little") for i in range(length // 8 + 1))[:length]


INPUTS: dict[str, Callable[[int], bytes]] = {
    "mixed": mixed,
    "zeros": bytes,
    "ab": lambda length: (b"ab" * length)[:length],
    "period 3000": lambda length: (mixed(3000) * (length // 3000 + 1))[:length],
    "lead_zero_everywhere.bin": lambda length: (
        (TOP / "fixtures" / "kernel" / "lead_zero_everywhere.bin").read_bytes() * 100
    )[:length],
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['input']} {v['length']} {v['min']}-{v['max']}")
def test_vectors(vector: dict[str, Any]) -> None:
    data = INPUTS[vector["input"]](vector["length"])
    assert hashlib.sha256(data).hexdigest() == vector["sha256"], "the generator, not the kernel, differs"
    sizes = vector["min"], vector["max"]
    expected = vector["cuts"], bytes.fromhex(vector["traits"])
    assert run(pure.Cutter(*sizes), data) == expected
    for variant in _kernel.usable():
        assert run(_kernel.Cutter(*sizes, variant=variant), data) == expected
