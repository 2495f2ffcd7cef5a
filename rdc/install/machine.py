"""The far machine, and the wheels that go there."""

from __future__ import annotations

import hashlib

from rdc.records import dataclass

__all__ = ["Machine", "Wheel"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides which wheels run: the answer of the far Python."""

    system: str
    architecture: str
    python: tuple[int, int]
    libc: str
    """Such as glibc-2.36, or musl."""
    soabi: str
    """Such as cpython-311-x86_64-linux-gnu."""
    executable: str


@dataclass(frozen=True, slots=True)
class Wheel:
    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()
