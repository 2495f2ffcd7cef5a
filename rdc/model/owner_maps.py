"""Maps of users or groups, written as in rsync: FROM:TO items between commas."""

from __future__ import annotations

from rdc.records import dataclass

__all__ = ["OwnerRule", "parse_owner_map"]

ID_LIMIT = 0xFFFF_FFFE
"""The largest id. The next one means "leave it" to chown(2)."""


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """One item of a map."""

    item: bytes
    """As the user wrote it."""
    to: bytes
    """A name or a number at the destination."""
    name: bytes | None = None
    """The source's name, with wildcards if `wild`; b"" for ids without a name. None: the numbers count."""
    wild: bool = False
    lowest: int = 0
    highest: int = 0
    """The last of the source's ids that the item is about."""

    @property
    def number(self) -> int | None:
        """The id that `to` writes; None for a name."""
        return int(self.to) if self.to.isdigit() else None


def parse_owner_map(text: bytes) -> tuple[OwnerRule, ...]:
    """Parses a map such as b"0-99:nobody,wayne:admin,*:normal". Raises ValueError that names the item."""
    return tuple(map(_parse_item, text.split(b",")))


def _parse_item(item: bytes) -> OwnerRule:
    source, colon, to = item.partition(b":")
    shown = item.decode("utf-8", "backslashreplace")
    if not colon or not to:
        raise ValueError(f"{shown}: expected FROM:TO, such as 1000:nobody, 0-99:daemon or *:users")
    if b"\0" in item:
        raise ValueError(f"{shown!r}: a name has no NUL byte")
    if to[:1].isdigit():
        _number(to, shown)
    if not source[:1].isdigit():
        return OwnerRule(item, to, source, not {*b"*?["}.isdisjoint(source))
    first, dash, last = source.partition(b"-")
    lowest = _number(first, shown)
    highest = _number(last, shown) if dash else lowest
    if highest < lowest:
        raise ValueError(f"{shown}: the range ends before it begins")
    return OwnerRule(item, to, None, False, lowest, highest)


def _number(digits: bytes, shown: str) -> int:
    if not (digits.isdigit() and len(digits) <= 10 and int(digits) <= ID_LIMIT):
        raise ValueError(f"{shown}: an id is a number from 0 to {ID_LIMIT}")
    return int(digits)
