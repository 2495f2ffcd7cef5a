"""The table of keys in plain Python. This file is the definition; the C code equals it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["KeyTable"]

KEY_BYTES = 16
NUMBER_LIMIT = (1 << 32) - 1


class KeyTable:
    """The numbers of the rows that have a key.

    The C code keeps 32 bits of a key's hash, so it also finds a row with another key, once in 2^32 / rows
    times. It refuses more equal keys than 8,192.
    """

    def __init__(self, rows: int, seed: ReadableBuffer) -> None:
        """`rows`: for which there is room at once. `seed`: 16 random bytes."""
        if not 0 <= rows < NUMBER_LIMIT or len(bytes(memoryview(seed))) != KEY_BYTES:
            raise ValueError("a table has room for 0 to 2^32 - 2 keys, and a seed of 16 bytes")
        self._numbers: dict[bytes, list[int]] = {}
        self._rows = 0

    def add(self, keys: ReadableBuffer, first: int) -> None:
        """Adds keys of 16 bytes each, with the numbers `first`, `first` + 1 and so on. A key may be there
        already."""
        data = bytes(memoryview(keys).cast("B"))
        rows = len(data) // KEY_BYTES
        if len(data) % KEY_BYTES or not 0 <= first <= NUMBER_LIMIT - rows:
            raise ValueError("keys have 16 bytes each, and numbers below 2^32 - 1")
        for row in range(rows):
            key = data[KEY_BYTES * row : KEY_BYTES * (row + 1)]
            self._numbers.setdefault(key, []).append(first + row)
        self._rows += rows

    def find(self, key: ReadableBuffer) -> tuple[int, ...]:
        """The numbers of the rows with a key, in no order."""
        data = bytes(memoryview(key).cast("B"))
        if len(data) != KEY_BYTES:
            raise ValueError("a key has 16 bytes")
        return tuple(self._numbers.get(data, ()))

    def missing(self, keys: ReadableBuffer) -> int:
        """The number of those keys that no row has."""
        data = bytes(memoryview(keys).cast("B"))
        if len(data) % KEY_BYTES:
            raise ValueError("keys have 16 bytes each")
        parts = [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]
        return sum(part not in self._numbers for part in parts)

    def __len__(self) -> int:
        return self._rows
