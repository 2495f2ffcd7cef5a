"""Codecs of message fields that hold a record of rdc.model: preserved metadata, metadata."""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import ALL_MODES, GRANULARITIES, Granularity, Preserved, Rounding
from rdc.protocol.wire.fields import Codec, Integer, Time, of_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

__all__ = ["MetadataItems", "PreservedCode"]


@dataclass(frozen=True, slots=True)
class PreservedCode:
    """Preserved metadata as one integer, 0 to 31 where only owners and extended attributes are in question.

    Its fields from the lowest bit: 1 with owners (1 bit); AttributeKinds (4); the index of the granularity's
    step (4) and its rounding (2); both of the source's granularity (4, 2); 1 without groups (1); the kinds
    without mtimes, as in UNTIMED (3); the kinds that cannot exist, as in UNMADE (2); the bits of modes that
    are not preserved of files (12) and of directories (12).
    """

    UNTIMED: ClassVar[tuple[Kind, ...]] = (Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK)
    UNMADE: ClassVar[tuple[Kind, ...]] = (Kind.SYMLINK, Kind.SPECIAL)
    WIDTHS: ClassVar[tuple[int, ...]] = (1, 4, 4, 2, 4, 2, 1, 3, 2, 12, 12)

    def pack(self, value: Preserved) -> object:
        mine, its = value.granularity, value.source_granularity
        items = (
            int(value.owner),
            int(value.attributes),
            GRANULARITIES.index(mine.step),
            int(mine.rounding),
            GRANULARITIES.index(its.step),
            int(its.rounding),
            int(not value.group),
            sum((kind in value.untimed) << bit for bit, kind in enumerate(self.UNTIMED)),
            sum((kind in value.unmade) << bit for bit, kind in enumerate(self.UNMADE)),
            ALL_MODES & ~value.modes,
            ALL_MODES & ~value.directory_modes,
        )
        code = shift = 0
        for item, width in zip(items, self.WIDTHS, strict=True):
            code |= item << shift
            shift += width
        return code

    def unpack(self, raw: object) -> Preserved:
        code = of_type(raw, int)
        if not 0 <= code < 1 << sum(self.WIDTHS):
            raise ValueError(f"{raw} stands for nothing that is kept")
        items = []
        for width in self.WIDTHS:
            items.append(code & (1 << width) - 1)
            code >>= width
        owner, kinds, mine, my_rounding, its, its_rounding, no_group, untimed, unmade, modes, others = items
        if max(mine, its) >= len(GRANULARITIES):
            raise ValueError(f"{raw} stands for no granularity")
        return Preserved(
            bool(owner),
            Granularity(GRANULARITIES[mine], Rounding(my_rounding)),
            ALL_MODES & ~modes,
            AttributeKinds(kinds),
            not no_group,
            ALL_MODES & ~others,
            frozenset(kind for bit, kind in enumerate(self.UNTIMED) if untimed >> bit & 1),
            frozenset(kind for bit, kind in enumerate(self.UNMADE) if unmade >> bit & 1),
            Granularity(GRANULARITIES[its], Rounding(its_rounding)),
        )


class MetadataItems:
    """[mode, mtime_ns, uid, gid]"""

    ITEMS: tuple[Codec, ...] = (
        Integer(0, 0o7777),
        Time(),
        Integer(0, 0xFFFF_FFFF),
        Integer(0, 0xFFFF_FFFF),
    )

    def pack(self, value: Metadata) -> object:
        return [value.mode, self.ITEMS[1].pack(value.mtime_ns), value.uid, value.gid]

    def unpack(self, raw: object) -> Metadata:
        items = of_type(raw, tuple)
        if len(items) != len(self.ITEMS):
            raise ValueError(f"expected {len(self.ITEMS)} items, found {len(items)}")
        return Metadata(*[codec.unpack(item) for codec, item in zip(self.ITEMS, items, strict=True)])
