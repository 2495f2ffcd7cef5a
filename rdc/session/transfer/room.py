"""The room that files in work share: how many there are, and the memory that their trees take."""

from __future__ import annotations

from rdc.limits.sessions import TREES_IN_FLIGHT, TREES_IN_FLIGHT_BYTES

__all__ = ["Room"]


class Room:
    """At most TREES_IN_FLIGHT files with trees of TREES_IN_FLIGHT_BYTES, or one file of any size."""

    __slots__ = ("files", "used")

    def __init__(self) -> None:
        self.files = 0
        self.used = 0
        """Bytes, as estimated."""

    @property
    def has_place(self) -> bool:
        """Whether one more file may enter."""
        return not self.files or (self.files < TREES_IN_FLIGHT and self.used < TREES_IN_FLIGHT_BYTES)

    @property
    def left(self) -> int:
        """Bytes. Negative where one large file takes more than there is."""
        return TREES_IN_FLIGHT_BYTES - self.used

    def enter(self, size: int) -> None:
        """A file enters, whose trees take `size` bytes."""
        self.files += 1
        self.used += size

    def grow(self, size: int) -> None:
        """A file that is in takes `size` bytes more."""
        self.used += size

    def leave(self, size: int) -> None:
        """A file leaves and gives back all its `size` bytes."""
        self.files -= 1
        self.used -= size
