"""The inputs of fixtures/kernel/vectors.json, and what the kernel makes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass

from rdc.kernel.constants import mix
from tests.support.project_paths import TOP

__all__ = ["VECTORS", "Vector"]

FIXTURES = TOP / "fixtures" / "kernel"


def _mixed(length: int) -> bytes:
    """The 64-bit words mix(0), mix(1), ... of FORMAT.md, little-endian."""
    return b"".join(mix(i).to_bytes(8, "little") for i in range(length // 8 + 1))[:length]


INPUTS: dict[str, Callable[[int], bytes]] = {
    "mixed": _mixed,
    "zeros": bytes,
    "ab": lambda length: (b"ab" * length)[:length],
    "period 3000": lambda length: (_mixed(3000) * (length // 3000 + 1))[:length],
    "lead_zero_everywhere.bin": lambda length: ((FIXTURES / "lead_zero_everywhere.bin").read_bytes() * 100)[
        :length
    ],
}


@dataclass(frozen=True, slots=True)
class Vector:
    input: str
    length: int
    sha256: str
    min: int
    max: int
    cuts: list[int]
    traits: str
    """In hexadecimal; empty for none."""

    def data(self) -> bytes:
        data = INPUTS[self.input](self.length)
        found = hashlib.sha256(data).hexdigest()
        assert found == self.sha256, "the generator, not the kernel, differs"
        return data


VECTORS = [Vector(**one) for one in json.loads((FIXTURES / "vectors.json").read_text())["vectors"]]
