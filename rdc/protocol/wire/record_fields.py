"""Codecs of message fields that hold a record of rdc.model: preserved metadata, metadata, options."""

from __future__ import annotations

from rdc.errors import printable
from rdc.limits.sessions import TIMEOUT_SECONDS
from rdc.limits.wire import RULES_BYTES
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Kind, Metadata
from rdc.model.filter_rules import FilterRule, RuleAction, are_plain
from rdc.model.preserved import ALL_MODES, GRANULARITIES, Granularity, Preserved, Rounding
from rdc.model.sync import SyncOptions
from rdc.protocol.wire.fields import Codec, Flag, Integer, Time, of_type
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["PreservedCode", "MetadataItems", "Options"]


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


class Options:
    """The options that the dialler asks for. Each side keeps its own `compress`."""

    # In wire order.
    FLAGS: tuple[tuple[str, Codec], ...] = (
        ("checksum", Flag()),
        ("delete", Flag()),
        ("force_empty", Flag()),
        ("dry_run", Flag()),
        ("fsync", Flag()),
        ("items", Flag()),
        ("owner", Flag(optional=True)),
        ("max_delete", Integer(optional=True)),
        ("bandwidth", Integer()),
        ("timeout", Integer(highest=TIMEOUT_SECONDS)),
    )
    # Options that few runs use, as bits of one integer, lowest bit first. The list is complete: a new option
    # is an item of Open of its own, because the bit after the last one says that bounds follow.
    RARE = (
        "one_file_system", "update", "existing", "ignore_existing", "size_only", "sparse", "hard_links",
        "acls", "xattrs", "delete_excluded", "group", "perms", "times",
    )  # fmt: skip
    DEFAULTS = SyncOptions()
    """A bit says that the option differs from its default."""
    # The next bit: the bounds of sizes stand at the end.
    BOUNDED = 1 << len(RARE)
    BOUNDS = (("min_size", Integer()), ("max_size", Integer(optional=True)))

    def pack(self, value: SyncOptions) -> object:
        rules = b""
        if are_plain(value.rules):
            # Others are an added option, which then has all rules.
            rules = b"".join(
                rule.action.value.encode() + rule.pattern + b"\0"
                for rule in value.rules
                if isinstance(rule, FilterRule)
            )
        differing = (getattr(value, name) is not getattr(self.DEFAULTS, name) for name in self.RARE)
        rare = sum(differs << bit for bit, differs in enumerate(differing))
        packed = [*(codec.pack(getattr(value, name)) for name, codec in self.FLAGS), rare, rules]
        if value.bounds_sizes:
            packed[-2] = rare | self.BOUNDED
            packed += (codec.pack(getattr(value, name)) for name, codec in self.BOUNDS)
        return packed

    def unpack(self, raw: object) -> SyncOptions:
        items = of_type(raw, tuple)
        plain = len(self.FLAGS)
        expected = plain + 2
        if len(items) < expected:
            raise ValueError(f"expected {expected} options, found {len(items)}")
        rare = of_type(items[plain], int)
        if not 0 <= rare < 2 * self.BOUNDED:
            raise ValueError(f"rare: {rare} is not in 0..{2 * self.BOUNDED - 1}")
        bounds = self.BOUNDS if rare & self.BOUNDED else ()
        if len(items) != expected + len(bounds):
            raise ValueError(f"expected {expected + len(bounds)} options, found {len(items)}")
        values: dict[str, Any] = {}
        named = [*zip(self.FLAGS, items[:plain], strict=True), *zip(bounds, items[expected:], strict=True)]
        for (name, codec), item in named:
            try:
                values[name] = codec.unpack(item)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        values |= {
            name: bool(rare >> bit & 1) ^ getattr(self.DEFAULTS, name) for bit, name in enumerate(self.RARE)
        }
        options = SyncOptions(rules=self._rules(of_type(items[plain + 1], bytes)), **values)
        if bounds and not options.bounds_sizes:
            raise ValueError("bounds of sizes that bound nothing")
        return options

    @staticmethod
    def _rules(blob: bytes) -> tuple[FilterRule, ...]:
        if len(blob) > RULES_BYTES:
            raise ValueError(f"rules of {len(blob)} bytes, the limit is {RULES_BYTES}")
        if not blob:
            return ()
        if blob[-1]:
            raise ValueError("the last rule does not end in NUL")
        actions = {action.value.encode(): action for action in RuleAction}
        rules = []
        for text in blob[:-1].split(b"\0"):
            action = actions.get(text[:1])
            if action is None or len(text) == 1:
                raise ValueError(f"a rule is '+' or '-' and a pattern, found '{printable(text[:60])}'")
            rules.append(FilterRule(action, text[1:]))
        return tuple(rules)
