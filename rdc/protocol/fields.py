"""How single message fields look in msgpack, and every check a received one must pass.

A codec's unpack() raises ValueError with the reason; the message registry adds message and field.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from rdc.errors import printable
from rdc.limits import PATH_BYTES, RULES_BYTES, SIZE_LIMIT, TIMEOUT_SECONDS
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Metadata
from rdc.model.kept import GRANULARITIES, Kept
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.protocol.columns import pack_column, pack_gaps, unpack_column, unpack_gaps
from rdc.records import dataclass
from rdc.typed import Generic, Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = [
    "Blob",
    "Codec",
    "Codes",
    "Column",
    "Content",
    "Flag",
    "Gaps",
    "Integer",
    "KeptCode",
    "Member",
    "MetadataItems",
    "Options",
    "Parts",
    "Path",
    "Strings",
    "Text",
    "Word",
]

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class Codec(Protocol):
    """Both directions of one field; packed values are None, bool, int, str, bytes or a short list of them."""

    def pack(self, value: Any, /) -> object: ...

    def unpack(self, raw: object, /) -> Any:
        """The checked value; ValueError says what is wrong with it."""


def of_type(raw: object, kind: type[T]) -> T:
    # type() and not isinstance(): True is an int to isinstance, and not one here.
    if type(raw) is not kind:
        raise ValueError(f"expected {kind.__name__}, found {type(raw).__name__}")
    return raw


@dataclass(frozen=True, slots=True)
class Integer:
    lowest: int = 0
    highest: int = SIZE_LIMIT
    optional: bool = False

    def pack(self, value: int | None) -> object:
        return value

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, int)
        if not self.lowest <= value <= self.highest:
            raise ValueError(f"{value} is not in {self.lowest}..{self.highest}")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    optional: bool = False

    def pack(self, value: bool | None) -> object:
        return value

    def unpack(self, raw: object) -> bool | None:
        return None if raw is None and self.optional else of_type(raw, bool)


@dataclass(frozen=True, slots=True)
class Member(Generic[E]):
    """A value of an IntEnum, as its integer."""

    kind: type[E]
    optional: bool = False
    without: tuple[E, ...] = ()

    def pack(self, value: E | None) -> object:
        return None if value is None else int(value)

    def unpack(self, raw: object) -> E | None:
        if raw is None and self.optional:
            return None
        value = self.kind(of_type(raw, int))
        if value in self.without:
            raise ValueError(f"{value!r} makes no sense here")
        return value


@dataclass(frozen=True, slots=True)
class KeptCode:
    """A Kept as one integer: four times the number of its step, 2 more without modes, 1 more with owners; 32
    times the AttributeKinds more."""

    STEPS: ClassVar[int] = 32

    def pack(self, value: Kept) -> object:
        code = 4 * GRANULARITIES.index(value.granularity) + 2 * (not value.modes) + value.owner
        return code + KeptCode.STEPS * int(value.attributes)

    def unpack(self, raw: object) -> Kept:
        code = of_type(raw, int)
        kinds, code = divmod(code, KeptCode.STEPS)
        if not (0 <= kinds < 8 and code >> 2 < len(GRANULARITIES)):
            raise ValueError(f"{raw} stands for nothing that is kept")
        return Kept(bool(code & 1), GRANULARITIES[code >> 2], not code & 2, AttributeKinds(kinds))


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes that only the user of the message understands."""

    shortest: int
    longest: int

    def pack(self, value: bytes) -> object:
        return self._checked(value)

    def unpack(self, raw: object) -> bytes:
        return self._checked(of_type(raw, bytes))

    def _checked(self, value: bytes) -> bytes:
        if not self.shortest <= len(value) <= self.longest:
            raise ValueError(f"{len(value)} bytes are not in {self.shortest}..{self.longest}")
        return value


@dataclass(frozen=True, slots=True)
class Content:
    """The content of files: the last field of its message, behind the others' msgpack and not in it, so that
    it need not be copied. What was received is a view."""

    shortest: int
    longest: int

    def pack(self, value: bytes | memoryview) -> object:
        return self.unpack(value)

    def unpack(self, raw: object) -> bytes | memoryview:
        value = raw if isinstance(raw, memoryview) else of_type(raw, bytes)
        if not self.shortest <= len(value) <= self.longest:
            raise ValueError(f"{len(value)} bytes are not in {self.shortest}..{self.longest}")
        return value


@dataclass(frozen=True, slots=True)
class Path:
    """A path as the file system has it. `inside`: relative, of plain components, b'' for the root itself."""

    inside: bool = False
    optional: bool = False

    def pack(self, value: bytes | None) -> object:
        return value

    def unpack(self, raw: object) -> bytes | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, bytes)
        if len(value) > PATH_BYTES:
            raise ValueError(f"{len(value)} bytes, the limit is {PATH_BYTES}")
        if b"\0" in value:
            raise ValueError("holds a NUL")
        if self.inside and value and not {b"", b".", b".."}.isdisjoint(value.split(b"/")):
            raise ValueError(f"{printable(value[:60])!r} is not a plain relative path")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """One printable line for a person; a longer one is cut when sent and refused when received."""

    longest: int
    """UTF-8 bytes."""

    def pack(self, value: str) -> object:
        return printable(value).encode()[: self.longest].decode(errors="ignore")

    def unpack(self, raw: object) -> str:
        value = of_type(raw, str)
        if len(value.encode()) > self.longest:
            raise ValueError(f"text of more than {self.longest} bytes")
        # What is not printable could forge lines on the user's terminal.
        return printable(value)


@dataclass(frozen=True, slots=True)
class Word:
    """A string that is one of a set."""

    choices: tuple[str, ...]

    def pack(self, value: str) -> object:
        return value

    def unpack(self, raw: object) -> str:
        value = of_type(raw, str)
        if value not in self.choices:
            raise ValueError(f"expected one of {', '.join(self.choices)}")
        return value


@dataclass(frozen=True, slots=True)
class Codes:
    """Strings of a fixed length in printable ASCII, one behind the other; at least one."""

    length: int
    count: int

    def pack(self, value: str) -> object:
        return value.encode("ascii")

    def unpack(self, raw: object) -> str:
        value = of_type(raw, bytes).decode("ascii", "replace")
        if (
            not 0 < len(value) <= self.length * self.count
            or len(value) % self.length
            or not value.isascii()
            or not value.isprintable()
        ):
            raise ValueError(f"expected {self.length} printable ASCII characters, up to {self.count} times")
        return value


@dataclass(frozen=True, slots=True)
class Gaps:
    """Strictly increasing integers, at least one unless said, as a column of gaps."""

    count: int
    limit: int
    may_be_empty: bool = False

    def pack(self, value: Sequence[int]) -> object:
        at_most(self.count, value)
        return pack_gaps(value)

    def unpack(self, raw: object) -> tuple[int, ...]:
        if raw == b"" and self.may_be_empty:
            return ()
        return unpack_gaps(of_type(raw, bytes), self.count, self.limit)


@dataclass(frozen=True, slots=True)
class Column:
    """Integers in any order."""

    count: int
    lowest: int = 0
    highest: int = SIZE_LIMIT

    def pack(self, value: Sequence[int]) -> object:
        at_most(self.count, value)
        return pack_column(value)

    def unpack(self, raw: object) -> tuple[int, ...]:
        values = tuple(unpack_column(of_type(raw, bytes), self.count))
        if values and not (self.lowest <= min(values) and max(values) <= self.highest):
            raise ValueError(f"an item is not in {self.lowest}..{self.highest}")
        return values


@dataclass(frozen=True, slots=True)
class Parts:
    """Byte strings: a column of their lengths, then all of them in one."""

    count: int
    longest: int

    def pack(self, value: Sequence[bytes]) -> object:
        at_most(self.count, value)
        return [pack_column([len(part) for part in value]), b"".join(value)]

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        lengths, blob = of_items(raw, bytes, bytes)
        sizes = unpack_column(lengths, self.count)
        if sum(sizes) != len(blob):
            raise ValueError(f"lengths add up to {sum(sizes)}, {len(blob)} bytes are there")
        if sizes and max(sizes) > self.longest:
            raise ValueError(f"an item of {max(sizes)} bytes, the limit is {self.longest}")
        parts = []
        start = 0
        for size in sizes:
            parts.append(blob[start : start + size])
            start += size
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class Strings:
    """Byte strings without NUL, each followed by one; an optional column may be empty."""

    count: int
    total: int
    """Bytes, unless it is a single string."""
    longest: int = PATH_BYTES

    def pack(self, value: Sequence[bytes]) -> object:
        at_most(self.count, value)
        return b"".join(part + b"\0" for part in value)

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        blob = of_type(raw, bytes)
        if blob.count(0) > self.count:
            raise ValueError(f"more than {self.count} strings")
        if blob and blob[-1]:
            raise ValueError("the last string does not end in NUL")
        parts = tuple(blob.split(b"\0")[:-1])
        if len(blob) > self.total and len(parts) > 1:
            raise ValueError(f"{len(blob)} bytes, the limit is {self.total}")
        if max(map(len, parts), default=0) > self.longest:
            raise ValueError(f"a string of more than {self.longest} bytes")
        return parts


class MetadataItems:
    """[mode, mtime_ns, uid, gid]"""

    ITEMS = (
        Integer(0, 0o7777),
        Integer(-SIZE_LIMIT - 1, SIZE_LIMIT),
        Integer(0, 0xFFFF_FFFF),
        Integer(0, 0xFFFF_FFFF),
    )

    def pack(self, value: Metadata) -> object:
        return [value.mode, value.mtime_ns, value.uid, value.gid]

    def unpack(self, raw: object) -> Metadata:
        items = of_items(raw, int, int, int, int)
        for codec, item in zip(self.ITEMS, items, strict=True):
            codec.unpack(item)
        return Metadata(*items)


class Options:
    """What the dialler asks for; `compress` stays with each side."""

    # Order on the wire.
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
    # Those that few runs have, as the bits of one integer, from the lowest on.
    RARE = (
        "one_file_system", "update", "existing", "ignore_existing", "size_only", "sparse", "hard_links",
        "acls", "xattrs", "delete_excluded",
    )  # fmt: skip
    # The next bit: these stand at the end.
    BOUNDED = 1 << len(RARE)
    BOUNDS = (("min_size", Integer()), ("max_size", Integer(optional=True)))

    def pack(self, value: SyncOptions) -> object:
        rules = b"".join(rule.action.value.encode() + rule.pattern + b"\0" for rule in value.rules)
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
                raise ValueError(f"a rule is '+' or '-' and a pattern, found {printable(text[:60])!r}")
            rules.append(FilterRule(action, text[1:]))
        return tuple(rules)


def at_most(count: int, values: Sequence[object]) -> None:
    # The bounds a sender can forget; the rest is for the receiver to check.
    if len(values) > count:
        raise ValueError(f"{len(values)} items, the limit is {count}")


def of_items(raw: object, *kinds: type) -> tuple[Any, ...]:
    """A tuple whose items have exactly these types."""
    items = of_type(raw, tuple)
    if tuple(map(type, items)) != kinds:
        raise ValueError(f"expected ({', '.join(kind.__name__ for kind in kinds)})")
    return items
