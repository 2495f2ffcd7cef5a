"""The options of a session on the wire, in an Open: PROTOCOL.md section 10 has the form.

How each option travels is declared at its field of SyncOptions, and its codec follows from its type and
range. The list in Open.options is closed: further options are named in Open.added, so a side that does not
know one refuses the session by name. Filter rules are in the list if each is an action and a pattern, else
among the named ones.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from rdc.errors import UsageError, printable
from rdc.lean.records import Record, replace
from rdc.limits import NAME_BYTES, PATH_BYTES, RULES_BYTES, SIZE_LIMIT, UNDO_DAYS
from rdc.model.entries import Kind, Metadata
from rdc.model.location import FarList
from rdc.model.options import Alternates, AlternateUse, Backup, Carrier, Declared, KeepUndo
from rdc.model.preserved import ALL_MODES, GRANULARITIES, AttributeKinds, Granularity, Preserved, Rounding
from rdc.model.selection import (
    DirectoryRules,
    FilterRule,
    RuleAction,
    RuleModifiers,
    RuleSide,
    RuleSyntax,
    are_plain,
)
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.protocol.wire.fields import Blob, Codec, Flag, Integer, Time, of_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, ClassVar, TypeAlias


if TYPE_CHECKING:
    Rule: TypeAlias = FilterRule | DirectoryRules


# --- codecs of values ---------------------------------------------------------------------------------------


class CheckedText(Record):
    """A text that is not empty, as the user wrote it."""

    kind: type
    declared: Declared

    def pack(self, value: str | bytes) -> object:
        return value

    def unpack(self, raw: object) -> object:
        value: str | bytes = of_type(raw, self.kind)
        if not value:
            raise ValueError("expected a text, found an empty one")
        self.declared.check_value(value)
        return value


class Optional(Record):
    """The value that `codec` packs; nil for None."""

    codec: Codec

    def pack(self, value: object) -> object:
        return None if value is None else self.codec.pack(value)

    def unpack(self, raw: object) -> object:
        return None if raw is None else self.codec.unpack(raw)


class RecordItems(Record):
    """The fields of a record as a list. The record checks what they mean together."""

    kind: Callable[..., object]
    fields: Mapping[str, Codec]

    def pack(self, value: object) -> object:
        return [codec.pack(getattr(value, name)) for name, codec in self.fields.items()]

    def unpack(self, raw: object) -> object:
        items = of_type(raw, tuple)
        if len(items) != len(self.fields):
            raise ValueError(f"expected {len(self.fields)} items, found {len(items)}")
        codecs = self.fields.values()
        return self.kind(*[codec.unpack(item) for codec, item in zip(codecs, items, strict=True)])


class AlternatesItems:
    """[use, directory, ...]. The record checks their number and what they hold."""

    def pack(self, value: Alternates) -> object:
        return [value.use.value, *value.directories]

    def unpack(self, raw: object) -> Alternates:
        items = of_type(raw, tuple) or ("",)
        directories = tuple(of_type(item, bytes) for item in items[1:])
        return Alternates(AlternateUse(of_type(items[0], str)), directories)


_SIDES = (RuleSide.DEFAULT, RuleSide.SOURCE, RuleSide.DESTINATION, RuleSide.BOTH)
_SYNTAXES = (
    RuleSyntax.RULES, RuleSyntax.INCLUDE, RuleSyntax.EXCLUDE, RuleSyntax.GIT, RuleSyntax.CACHE_TAG,
)  # fmt: skip
_DIGITS = b"0123456789abcdef"
_PLAIN = FilterRule(RuleAction.EXCLUDE, b"-").modifiers
"""The fields of a rule that is an action and a pattern."""
_RULE_FLAGS = ("negated", "perishable", "absolute")
_FILE_FLAGS = ("inherited", "words", "clears", "perishable", "absolute", "above")


class RuleItems:
    """For each rule its code as three hexadecimal digits, its text, and NUL; PROTOCOL.md section 10 has the
    bits of a code.

    A list that Open's own rules can say is not valid here, so that each list has one form.
    """

    def pack(self, value: tuple[Rule, ...]) -> object:
        return b"".join(pack_rules(value))

    def unpack(self, raw: object) -> tuple[Rule, ...]:
        rules = RulePart().unpack(raw)
        if are_plain(rules):
            raise ValueError("rules without anything to add")
        return rules


class RulePart:
    """Some of the rules, in the same form."""

    def pack(self, value: tuple[Rule, ...]) -> object:
        return b"".join(pack_rules(value))

    def unpack(self, raw: object) -> tuple[Rule, ...]:
        blob = of_type(raw, bytes)
        if len(blob) > RULES_BYTES:
            raise ValueError(f"rules of {len(blob)} bytes, the limit is {RULES_BYTES}")
        texts = blob.split(b"\0")
        if texts.pop():
            raise ValueError("expected NUL after each rule")
        return tuple(_unpacked(text[:3], text[3:]) for text in texts)


def rule_bytes(rule: Rule) -> int:
    """Return the bytes that a rule takes at most on the wire."""
    return 4 + len(rule.pattern if isinstance(rule, FilterRule) else rule.name)


def pack_rules(rules: Iterable[Rule]) -> Iterator[bytes]:
    """Yield the form of each rule."""
    for rule in rules:
        yield b"%03x%b\0" % _packed(rule)


def _packed(rule: Rule) -> tuple[int, bytes]:
    if isinstance(rule, FilterRule) and rule.modifiers is _PLAIN:
        return (rule.action is RuleAction.INCLUDE) << 1, rule.pattern
    side = _SIDES.index(rule.side)
    if isinstance(rule, FilterRule):
        code = (rule.action is RuleAction.INCLUDE) | side << 1 | _bits(rule.modifiers, _RULE_FLAGS) << 3
        return code << 1, rule.pattern
    code = _SYNTAXES.index(rule.syntax) | side << 3 | _bits(rule, _FILE_FLAGS) << 5
    return code << 1 | 1, rule.name


def _bits(rule: RuleModifiers | DirectoryRules, flags: tuple[str, ...]) -> int:
    return sum(getattr(rule, name) << bit for bit, name in enumerate(flags))


def _unpacked(digits: bytes, text: bytes) -> Rule:
    if not text:
        raise ValueError("a rule is a code of three digits and a text")
    is_file, code = _number(digits)
    if not is_file:
        action, modifiers = _kind(code)
        return FilterRule(action, text, modifiers)
    if not 0 <= code < 1 << 11 or code & 7 >= len(_SYNTAXES):
        raise ValueError(f"{code} is no code of per-directory rules")
    if b"/" in text or text in (b".", b"..") or len(text) > NAME_BYTES:
        raise ValueError("per-directory rules with the name of no file")
    return DirectoryRules(text, _SYNTAXES[code & 7], _SIDES[code >> 3 & 3], **_flags(code >> 5, _FILE_FLAGS))


@cache
def _number(digits: bytes) -> tuple[int, int]:
    """Return whether the rules are in files, and their code."""
    if len(digits) != 3 or any(digit not in _DIGITS for digit in digits):
        raise ValueError("a rule is a code of three digits and a text")
    number = int(digits, 16)
    return number & 1, number >> 1


@cache
def _kind(code: int) -> tuple[RuleAction, RuleModifiers]:
    """One record for all rules with these modifiers."""
    if not 0 <= code < 1 << 6:
        raise ValueError(f"{code} is no code of a rule")
    action = RuleAction.INCLUDE if code & 1 else RuleAction.EXCLUDE
    if not code >> 1:
        return action, _PLAIN
    return action, RuleModifiers(_SIDES[code >> 1 & 3], **_flags(code >> 3, _RULE_FLAGS))


def _flags(bits: int, names: tuple[str, ...]) -> dict[str, bool]:
    return {name: bool(bits >> bit & 1) for bit, name in enumerate(names)}


_RECORDS: Mapping[str, Codec] = {
    "Alternates": AlternatesItems(),
    "Backup": RecordItems(
        Backup, {"suffix": Blob(0, NAME_BYTES), "directory": Optional(Blob(1, PATH_BYTES))}
    ),
    "FarList": RecordItems(FarList, {"path": Blob(1, PATH_BYTES), "nul": Flag(), "relative": Flag()}),
    "KeepUndo": RecordItems(
        KeepUndo, {"size": Optional(Integer(1, SIZE_LIMIT)), "days": Optional(Integer(1, UNDO_DAYS))}
    ),
}


def _codec(name: str, declared: Declared) -> Codec:
    """Return the codec of a field, by its type. Only an item of the list may be nil: what is named is not
    None."""
    kind, _, rest = SyncOptions.__annotations__[name].partition(" | ")
    optional = rest == "None" and declared.wire.carrier is not Carrier.NAMED
    if kind == "bool":
        return Flag(optional)
    if kind == "int":
        return Integer(declared.least, declared.most, optional)
    if kind in ("str", "bytes"):
        return CheckedText(str if kind == "str" else bytes, declared)
    return RuleItems() if kind.startswith("tuple[") else _RECORDS[kind]


def _carried(*carriers: Carrier) -> dict[str, Codec]:
    """Return the codecs of all options that travel so, in wire order."""
    found = [(each.wire.at, name, each) for name, each in OPTIONS.items() if each.wire.carrier in carriers]
    return {name: _codec(name, OPTIONS[name]) for _, name in sorted((at, name) for at, name, _ in found)}


# --- the list -----------------------------------------------------------------------------------------------


class Options:
    """The options that the dialler asks for."""

    ITEMS = _carried(Carrier.ITEM)
    BITS = tuple(_carried(Carrier.BIT))
    """Options that few runs use, as bits of one integer, lowest bit first: each differs from its default. The
    next bit says that the bounds of sizes stand at the end, so no further option joins them."""
    BOUNDED = 1 << len(BITS)
    BOUNDS = _carried(Carrier.BOUND)

    def pack(self, value: SyncOptions) -> object:
        rules = b""
        if are_plain(value.rules):
            # Others are an added option, which then has all rules.
            rules = b"".join(
                rule.action.value.encode() + rule.pattern + b"\0"
                for rule in value.rules
                if isinstance(rule, FilterRule)
            )
        rare = sum(
            (getattr(value, name) is not OPTIONS[name].default) << bit for bit, name in enumerate(self.BITS)
        )
        packed = [*(codec.pack(getattr(value, name)) for name, codec in self.ITEMS.items()), rare, rules]
        if value.bounds_sizes:
            packed[-2] = rare | self.BOUNDED
            packed += (codec.pack(getattr(value, name)) for name, codec in self.BOUNDS.items())
        return packed

    def unpack(self, raw: object) -> SyncOptions:
        items = of_type(raw, tuple)
        plain = len(self.ITEMS)
        expected = plain + 2
        if len(items) < expected:
            raise ValueError(f"expected {expected} options, found {len(items)}")
        rare = of_type(items[plain], int)
        if not 0 <= rare < 2 * self.BOUNDED:
            raise ValueError(f"rare: {rare} is not in 0..{2 * self.BOUNDED - 1}")
        bounds = self.BOUNDS if rare & self.BOUNDED else {}
        if len(items) != expected + len(bounds):
            raise ValueError(f"expected {expected + len(bounds)} options, found {len(items)}")
        values: dict[str, Any] = {}
        codecs = self.ITEMS | bounds
        for (name, codec), item in zip(codecs.items(), items[:plain] + items[expected:], strict=True):
            try:
                values[name] = codec.unpack(item)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        values |= {name: bool(rare >> bit & 1) ^ OPTIONS[name].default for bit, name in enumerate(self.BITS)}
        try:
            options = SyncOptions(rules=self._rules(of_type(items[plain + 1], bytes)), **values)
        except UsageError as error:
            raise ValueError(str(error)) from None
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


# --- the named ones -----------------------------------------------------------------------------------------

ADDED_OPTIONS: Mapping[str, Codec] = _carried(Carrier.NAMED, Carrier.SPARED)
"""The codec of each option that travels by its name, in increasing order of names."""

DISPENSABLE = frozenset(_carried(Carrier.SPARED))
"""The kinds that a session can do without: a side that does not know them makes no such entries, or has one
call in flight."""

SELECTION = "selection"
"""The name that an Open needs if Selected messages follow it. It has no value."""

RULE_PARTS = "rule_parts"
"""The name that an Open needs if its filter rules follow it as Rules messages. It has no value."""


UNITED_XATTRS, UNITED_ACLS, UNITED_LINKS = "united_xattrs", "united_acls", "united_links"
"""The names that an Open needs if extended attributes, ACLs or hard links take part where trees are united.
They have no value."""


class NamedValues(Record):
    """Options by name, in increasing order of names."""

    items: tuple[tuple[str, Any], ...]


def added_values(options: SyncOptions) -> NamedValues | None:
    """Return the options that have to be named in an Open; None for none."""
    values = ((name, getattr(options, name)) for name in ADDED_OPTIONS)
    changed = tuple((name, value) for name, value in values if _is_added(name, value))
    return NamedValues(changed) if changed else None


def _is_added(name: str, value: Any) -> bool:
    """Return whether the value differs from the default, and has no place elsewhere in Open."""
    return value != OPTIONS[name].default and not (name == "rules" and are_plain(value))


def with_added(options: SyncOptions, values: NamedValues | None) -> SyncOptions:
    """Return `options` with the values that an Open named. Raises UsageError for options that exclude each
    other."""
    return options if values is None else replace(options, **dict(values.items))


class AddedOptions:
    """[name, value, name, value, ...] with names in increasing order; nil for none. Unknown names are left
    out."""

    optional = True

    def pack(self, value: NamedValues | None) -> object:
        if value is None:
            return None
        return [item for name, field in value.items for item in (name, ADDED_OPTIONS[name].pack(field))]

    def unpack(self, raw: object) -> NamedValues | None:
        if raw is None:
            return None
        items = of_type(raw, tuple)
        names = [of_type(name, str) for name in items[::2]]
        if len(items) % 2 or not names or any(first >= second for first, second in pairwise(names)):
            raise ValueError("expected names in increasing order, a value behind each")
        values = []
        for name, value in zip(names, items[1::2], strict=True):
            codec = ADDED_OPTIONS.get(name)
            if codec is not None:
                try:
                    values.append((name, codec.unpack(value)))
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        return NamedValues(tuple(values)) if values else None


# Codecs of message fields that hold a record of rdc.model: preserved metadata, metadata.


class PreservedCode(Record):
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
