"""Codecs of message fields that hold a record of rdc.model: preserved metadata, metadata, options."""

from __future__ import annotations

from rdc.errors import printable
from rdc.limits.sessions import TIMEOUT_SECONDS
from rdc.limits.wire import RULES_BYTES
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Metadata
from rdc.model.filter_rules import FilterRule, RuleAction, are_plain
from rdc.model.preserved import GRANULARITIES, Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.wire.fields import Codec, Flag, Integer, of_type
from rdc.protocol.wire.time_fields import Time
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["PreservedCode", "MetadataItems", "Options"]


@dataclass(frozen=True, slots=True)
class PreservedCode:
    """Preserved metadata as one integer: 4 * index of the granularity + 2 without modes + 1 with owners + 32
    * AttributeKinds."""

    STEPS: ClassVar[int] = 32

    def pack(self, value: Preserved) -> object:
        code = 4 * GRANULARITIES.index(value.granularity) + 2 * (not value.modes) + value.owner
        return code + PreservedCode.STEPS * int(value.attributes)

    def unpack(self, raw: object) -> Preserved:
        code = of_type(raw, int)
        kinds, code = divmod(code, PreservedCode.STEPS)
        if not (0 <= kinds < 16 and code >> 2 < len(GRANULARITIES)):
            raise ValueError(f"{raw} stands for nothing that is kept")
        return Preserved(bool(code & 1), GRANULARITIES[code >> 2], not code & 2, AttributeKinds(kinds))


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
        "acls", "xattrs", "delete_excluded",
    )  # fmt: skip
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
        rare = sum(getattr(value, name) << bit for bit, name in enumerate(self.RARE))
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
        values |= {name: bool(rare >> bit & 1) for bit, name in enumerate(self.RARE)}
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
