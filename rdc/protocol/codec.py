"""The codec of whole messages: a class declares its fields, this takes it to msgpack and back, checked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from operator import attrgetter

import msgpack

from rdc import records
from rdc.errors import ProtocolError
from rdc.limits import FRAME_BYTES, MESSAGE_BYTES
from rdc.protocol.fields import Codec, Content, Flag, Integer, Path, Word, of_type
from rdc.protocol.varint import decode_varint, encode_varint
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, NoReturn

__all__ = [
    "WireMessage",
    "decode_payload",
    "encode_parts",
    "encode_payload",
    "field_names",
    "registered",
    "wire",
]

# msgpack allocates an array when it has read its head: with arrays this short, the deepest nesting it
# accepts (1,024) allocates 128 KiB. Many values travel in one binary field instead (columns.py).
ARRAY_ITEMS = 16

# Only Hello is a map: room for keys of later versions, little for a peer to fill memory with.
MAP_KEYS = 64
MAP_BYTES = 4096


class WireMessage:
    """What all messages share; wire() sets `kind` and `name`.

    Comparison and repr are here once: made by dataclass for each class they would take a tenth of the time
    that rdc needs to start.
    """

    __slots__ = ()
    kind: ClassVar[int]
    name: ClassVar[str]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        names = field_names(self.kind)
        values = ", ".join(f"{name}={value!r}" for name, value in zip(names, self._values(), strict=True))
        return f"{self.name}({values})"

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in field_names(self.kind))

    def check(self) -> str | None:
        """What is wrong between fields that are each right, as "field: reason"."""
        return None


M = TypeVar("M", bound=type[WireMessage])


class _Shape:
    """How a message looks on the wire."""

    def __init__(self, message: type[WireMessage], keys: tuple[str, ...] | None) -> None:
        self.message = message
        self.keys = keys
        """Keys of a payload that is a map; None: the payload is an array."""

    @cached_property
    def fields(self) -> tuple[tuple[str, Codec], ...]:
        """Read from the annotations when the first such message passes: most sessions see a third of them."""
        names = records.field_names(self.message)
        texts = (self.message.__annotations__[name] for name in names)
        # All at once; what Annotated is here leaves the codec of each (rdc/typed.py).
        codecs: tuple[Codec, ...] = eval(  # noqa: S307 - the source of this package
            "".join(f"{text}, " for text in texts).join("()"), vars(sys.modules[self.message.__module__])
        )
        return tuple((name, codec) for name, codec in zip(names, codecs, strict=True))

    @cached_property
    def content(self) -> bool:
        """The last field is Content."""
        return bool(self.fields) and isinstance(self.fields[-1][1], Content)

    # A session of small files is thousands of messages of a few kinds: what depends on the kind alone is
    # found out once, and a field of which nothing is to be asked costs no call.

    @cached_property
    def values(self) -> Callable[[WireMessage], tuple[Any, ...]]:
        """The fields of a message."""
        names = [name for name, _ in self.fields]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda message: tuple([getattr(message, name) for name in names])

    @cached_property
    def packers(self) -> tuple[tuple[int, Callable[[Any], object]], ...]:
        """Fields that do not travel as they are, or are checked before."""
        return tuple(
            (row, codec.pack) for row, (_, codec) in enumerate(self.fields) if not isinstance(codec, _AS_IS)
        )

    @cached_property
    def integers(self) -> tuple[tuple[int, int, int], ...]:
        """Fields that are right if they are integers in these bounds."""
        return tuple(
            (row, codec.lowest, codec.highest)
            for row, (_, codec) in enumerate(self.fields)
            if isinstance(codec, Integer)
        )

    @cached_property
    def unpackers(self) -> tuple[tuple[int, Callable[[object], Any]], ...]:
        """All other fields."""
        return tuple(
            (row, codec.unpack)
            for row, (_, codec) in enumerate(self.fields)
            if not isinstance(codec, Integer)
        )

    @cached_property
    def checks(self) -> bool:
        """There is something between its fields to be checked."""
        return self.message.check is not WireMessage.check


_AS_IS = (Integer, Flag, Path, Word)
"""Codecs that pack a value as it is."""

_SHAPES: dict[int, _Shape] = {}

_unpack = partial(
    msgpack.unpackb,
    use_list=False,
    max_array_len=ARRAY_ITEMS,
    max_map_len=MAP_KEYS,
    max_str_len=MESSAGE_BYTES,
    max_bin_len=FRAME_BYTES,
    max_ext_len=0,
)


def wire(kind: int, keys: tuple[str, ...] | None = None) -> Callable[[M], M]:
    """Declare a message: its type number, and the keys if its payload is a map.

    The class is a dataclass whose fields are annotated with their codec, Annotated[type, codec], and travel
    in their order.
    """

    def register(cls: M) -> M:
        if kind in _SHAPES:
            raise TypeError(f"type {kind} of {cls.__name__} is taken")
        _SHAPES[kind] = _Shape(cls, keys)
        cls.kind = kind
        cls.name = cls.__name__
        return cls

    return register


def registered() -> dict[int, type[WireMessage]]:
    """Type number to class, for every message declared so far."""
    return {kind: shape.message for kind, shape in _SHAPES.items()}


def field_names(kind: int) -> tuple[str, ...]:
    """The fields of a message in wire order."""
    return tuple(name for name, _ in _SHAPES[kind].fields)


def encode_payload(message: WireMessage, packer: msgpack.Packer | None = None) -> bytes:
    """The payload. ValueError when the message breaks the protocol's bounds: the caller's mistake."""
    head, content = encode_parts(message, packer)
    return b"".join((head, content)) if content else head


def encode_parts(
    message: WireMessage, packer: msgpack.Packer | None = None
) -> tuple[bytes, bytes | memoryview]:
    """The payload as what was made for it and the content that follows, which is the message's own."""
    shape = _SHAPES[message.kind]
    problem = message.check() if shape.checks else None
    if problem is not None:
        raise ValueError(f"{message.name}.{problem}")
    values = list(shape.values(message))
    for row, pack in shape.packers:
        values[row] = pack(values[row])
    content = values.pop() if shape.content else b""
    payload: bytes = (packer or msgpack.Packer(use_bin_type=True)).pack(
        values if shape.keys is None else dict(zip(shape.keys, values, strict=True))
    )
    if shape.content:
        payload = encode_varint(len(payload)) + payload
    size = len(payload) + len(content)
    if size > FRAME_BYTES:
        raise ValueError(f"{message.name} has {size} bytes, the limit is {FRAME_BYTES}")
    return payload, content


def decode_payload(kind: int, payload: bytes | memoryview) -> WireMessage:
    """The message, every field checked. Raises ProtocolError that names message and field."""
    shape = _SHAPES.get(kind)
    if shape is None:
        raise ProtocolError(f"the far side sent a message of unknown type {kind}")
    name = shape.message.name
    if shape.keys is not None and len(payload) > MAP_BYTES:
        raise ProtocolError(f"the far side sent a {name} of {len(payload)} bytes, the limit is {MAP_BYTES}")
    content = None
    if shape.content:
        payload, content = _parted(name, memoryview(payload))
    try:
        raw = _unpack(payload, object_hook=_no_map if shape.keys is None else None)
    except (ValueError, TypeError) as error:
        raise ProtocolError(
            f"the far side sent a {name} that is not msgpack within limits ({error})"
        ) from error
    row = -1
    try:
        values: list[Any] = list(_raw_values(shape, raw))
        if content is not None:
            values.append(content)
        for row, lowest, highest in shape.integers:
            value = values[row]
            # type() and not isinstance(), for True; what is wrong, or may be None, is for the codec to say.
            if type(value) is not int or not lowest <= value <= highest:
                values[row] = shape.fields[row][1].unpack(value)
        for row, unpack in shape.unpackers:
            values[row] = unpack(values[row])
    except ValueError as error:
        field = "payload" if row < 0 else shape.fields[row][0]
        raise ProtocolError(f"the far side sent a bad {name}.{field}: {error}") from error
    message = shape.message(*values)
    problem = message.check() if shape.checks else None
    if problem is not None:
        raise ProtocolError(f"the far side sent a bad {name}.{problem}")
    return message


def _parted(name: str, payload: memoryview) -> tuple[memoryview, memoryview]:
    """The msgpack and the content behind it."""
    head = decode_varint(payload, 0, FRAME_BYTES, f"a length in a {name}")
    if head is None or head[0] > len(payload) - head[1]:
        raise ProtocolError(f"the far side sent a {name} that ends before its content")
    length, start = head
    return payload[start : start + length], payload[start + length :]


def _no_map(_pairs: object) -> NoReturn:
    # Empty maps are one byte to send and 64 to keep.
    raise ValueError("a map")


def _raw_values(shape: _Shape, raw: object) -> tuple[object, ...]:
    if shape.keys is not None:
        pairs = of_type(raw, dict)
        return tuple(map(pairs.get, shape.keys))
    items = of_type(raw, tuple)
    expected = len(shape.fields) - shape.content
    if len(items) != expected:
        raise ValueError(f"expected {expected} fields, found {len(items)}")
    return items
