"""Codecs of message fields with one value, each with the checks that a received value must pass.

The codecs of columns are in column_fields.py, those of metadata in record_fields.py, those of options in
options.py. Every `unpack` raises ValueError with the reason; rdc/protocol/wire/codec.py adds the names of
message and field.
"""

from __future__ import annotations

from enum import IntEnum

from rdc.errors import one_line, printable
from rdc.limits.paths import PATH_BYTES, PATH_DEPTH
from rdc.limits.wire import SIZE_LIMIT, TOTAL_BYTES, TOTAL_LIMIT
from rdc.records import dataclass
from rdc.typed import Generic, Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Blob",
    "Codec",
    "Codes",
    "Content",
    "Flag",
    "Integer",
    "Member",
    "Path",
    "Text",
    "Total",
    "Word",
    "check_inner",
    "of_items",
    "of_type",
]

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class Codec(Protocol):
    """Both directions of one field. A packed value is None, bool, int, str, bytes or a short list of
    these."""

    def pack(self, value: Any, /) -> object: ...

    def unpack(self, raw: object, /) -> Any:
        """The checked value. ValueError gives the reason."""


def of_type(raw: object, kind: type[T]) -> T:
    # type() and not isinstance(): True is an int to isinstance, but not here.
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
class Total:
    """A sum of sizes: an integer as long as it is at most SIZE_LIMIT, else its bytes, lowest first."""

    optional: bool = False

    def pack(self, value: int | None) -> object:
        if value is None or value <= SIZE_LIMIT:
            return value
        if value > TOTAL_LIMIT:
            raise ValueError(f"{value} is not in 0..{TOTAL_LIMIT}")
        return value.to_bytes(-(-value.bit_length() // 8), "little")

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        if type(raw) is bytes:
            value = int.from_bytes(raw, "little")
            if len(raw) > TOTAL_BYTES or value <= SIZE_LIMIT or not raw[-1]:
                raise ValueError(f"{len(raw)} bytes are not the shortest form of a total up to {TOTAL_LIMIT}")
            return value
        value = of_type(raw, int)
        if not 0 <= value <= SIZE_LIMIT:
            raise ValueError(f"{value} is not in 0..{SIZE_LIMIT}")
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
    """A member of an IntEnum as its integer."""

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
class Blob:
    """Bytes that only the user of the message interprets."""

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
    """File content: the last field of its message, after the msgpack of the others, so it is not copied. A
    received value is a view."""

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
    """A path as the file system has it. inside: relative, with plain components only, b'' for the root
    itself."""

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
        if self.inside:
            check_inner(value)
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """One printable line for a person. A longer line is cut when sent and refused when received."""

    longest: int
    """Limit in UTF-8 bytes."""
    optional: bool = False

    def pack(self, value: str | None) -> object:
        if value is None and self.optional:
            return None
        return one_line(of_type(value, str)).encode()[: self.longest].decode(errors="ignore")

    def unpack(self, raw: object) -> str | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, str)
        if len(value.encode()) > self.longest:
            raise ValueError(f"text of more than {self.longest} bytes")
        # Unprintable characters could forge lines on the user's terminal.
        return one_line(value)


@dataclass(frozen=True, slots=True)
class Word:
    """A string out of a fixed set."""

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
    """One or more strings of a fixed length in printable ASCII, concatenated."""

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


_NO_NAMES = frozenset((b"", b".", b".."))


def check_inner(path: bytes) -> None:
    """ValueError unless `path` is b"" or plain components between slashes. The caller has checked the
    length."""
    if path.count(b"/") >= PATH_DEPTH:
        raise ValueError(f"{path.count(b'/') + 1} components, the limit is {PATH_DEPTH}")
    if path and not _NO_NAMES.isdisjoint(path.split(b"/")):
        raise ValueError(f"{printable(path[:60])!r} is not a plain relative path")


def of_items(raw: object, *kinds: type) -> tuple[Any, ...]:
    """A tuple whose items have exactly these types."""
    items = of_type(raw, tuple)
    if tuple(map(type, items)) != kinds:
        raise ValueError(f"expected ({', '.join(kind.__name__ for kind in kinds)})")
    return items
