"""Groups of rows with equal values, as packed columns."""

from __future__ import annotations

from array import array

from rdc.kernel import equal_rows
from rdc.lean.records import dataclass
from rdc.model.entries import little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import ReadableBuffer

__all__ = ["Groups", "equal_groups"]


@dataclass(frozen=True, slots=True)
class Groups:
    members: array[int]
    """Typecode 'I': the rows of the first group, then those of the next."""
    counts: array[int]
    """Typecode 'I': number of rows in each group."""

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[array[int]]:
        """The rows of each group."""
        at = 0
        for count in self.counts:
            yield self.members[at : at + count]
            at += count

    @classmethod
    def of_rows(cls, groups: Iterable[array[int]]) -> Groups:
        """Makes groups from an iterable of their rows."""
        members, counts = array("I"), array("I")
        for group in groups:
            members.extend(group)
            counts.append(len(group))
        return cls(members, counts)

    @classmethod
    def joined(cls, parts: Iterable[Groups]) -> Groups:
        members, counts = array("I"), array("I")
        for part in parts:
            members.extend(part.members)
            counts.extend(part.counts)
        return cls(members, counts)

    def of(self, rows: array[int]) -> Groups:
        """Replaces each row number by the entry of `rows` at that position."""
        return Groups(array("I", map(rows.__getitem__, self.members)), self.counts)


def equal_groups(column: ReadableBuffer, width: int) -> Groups:
    """Groups of rows of `column`, `width` bytes each, with equal values. Groups are in order of value."""
    members, counts = equal_rows(column, width)
    return Groups(little_endian_integers("I", members), little_endian_integers("I", counts))
