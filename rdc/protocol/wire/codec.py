"""Messages: what their classes declare, and the codec that packs, unpacks and checks their fields.

A message is one class with the decorator `message`. It states the number on the wire and the message's place
in a session: who sends it, in which states, what it asks for or which requests it answers, and what its bytes
are for. The annotations of the fields carry their codecs. Everything else that treats messages by kind is
derived: the table of transitions, the order of requests and answers, features, costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, partial
from operator import attrgetter

import msgpack

from rdc.errors import ProtocolError
from rdc.lean import records
from rdc.lean.enums import Enum, IntEnum
from rdc.lean.typed import TypeVar
from rdc.limits import FRAME_BYTES, MESSAGE_BYTES
from rdc.model.runs import Purpose
from rdc.protocol.wire.fields import (
    Codec,
    Content,
    Flag,
    Integer,
    Path,
    Word,
    decode_varint,
    encode_varint,
    of_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, ClassVar, NoReturn

# msgpack allocates an array after its head. With at most 128 items per array, the deepest accepted nesting
# (1,024) allocates 1 MiB. The longest array has names and values of an Open's added options, of which there
# may be 64. Many values travel in one binary field instead (fields.py).
ARRAY_ITEMS = 128

# Only Hello is a map: it leaves room for keys of later versions.
MAP_KEYS = 64


class Role(IntEnum):
    """The end of the copy that a side is."""

    SOURCE = 0
    DESTINATION = 1

    @property
    def other(self) -> Role:
        return Role(1 - self)


class State(Enum):
    """The state of one side of a connection: it determines what that side may send next."""

    GREETING = "greeting"
    """Both: Hello is next."""
    OPENING = "opening"
    """Both: the dialler's Open or the answerer's Opened is next."""
    LISTING = "listing"
    """S describes its tree as requested, and may already answer requests."""
    SERVING = "serving"
    """S only answers requests."""
    ASKING = "asking"
    """D requests and reports."""
    DONE = "done"
    """D has everything it needs."""
    WATCHING = "watching"
    """S has announced everything and waits for changes."""
    CLOSED = "closed"
    """Nothing may follow."""


SOURCE, DESTINATION = (Role.SOURCE,), (Role.DESTINATION,)
EITHER = SOURCE + DESTINATION
GREETING, OPENING, LISTING, SERVING = State.GREETING, State.OPENING, State.LISTING, State.SERVING
ASKING, DONE, WATCHING, CLOSED = State.ASKING, State.DONE, State.WATCHING, State.CLOSED
ANSWERING = (LISTING, SERVING)
UNTIL_CLOSED = tuple(state for state in State if state is not CLOSED)

STATES: Mapping[Role, tuple[State, ...]] = {
    Role.SOURCE: (GREETING, OPENING, LISTING, SERVING, WATCHING, CLOSED),
    Role.DESTINATION: (GREETING, OPENING, ASKING, DONE, CLOSED),
}
"""The states of each role. Up to OPENING, no side needs to know its own."""

WORKING: Mapping[Role, State] = {Role.SOURCE: LISTING, Role.DESTINATION: ASKING}
"""The state of each role once the session is open."""


class Illegal(Exception):  # noqa: N818 - not an error until the connection knows whose fault it is
    """The sender must not send this message now; `str()` says why."""


class Place(records.Record):
    """The place of a message in a session."""

    by: tuple[Role, ...]
    """The roles that send it. A side has a role for one turn."""
    when: tuple[State, ...]
    """The states of the sender in which it may send it; only those of its role count."""
    then: State | Mapping[Role, State] | None
    """The sender's next state, or that of each role; None for the same one."""
    needs: State | None
    """The state that the OTHER side must be in."""
    moves: tuple[State, State] | None
    """The state from which, and to which, it moves the OTHER side as well."""
    asks: str | None
    """The field of a request that names what it asks for. Its ordinals are pending until they are answered.
    A column is as many as it has items, but a request that names none is one, too; any other field is one.
    """
    answers: tuple[type[Message], ...]
    """The requests that an answer may answer."""
    purpose: Purpose
    """The purpose of its bytes."""
    feature: str | None
    """The name of the feature without which a session does not have it."""
    since: int | None
    """The first version of the protocol that has it; None for all."""

    def after(self, role: Role, state: State) -> State:
        """Return the state of a sender that was in `state`."""
        if self.then is None:
            return state
        return self.then if isinstance(self.then, State) else self.then[role]

    def transitions(self) -> Iterator[tuple[Role, State, State]]:
        """Yield each role and state in which it may be sent, and the state after that."""
        for role in self.by:
            for state in self.when:
                if state in STATES[role]:
                    yield role, state, self.after(role, state)


class Message:
    """Base of all messages, which are records. The decorator message() sets `kind`, `name` and `place`."""

    __slots__ = ()
    kind: ClassVar[int]
    name: ClassVar[str]
    place: ClassVar[Place]

    def check(self) -> str | None:
        """Return the mistake between fields that are each valid, as "field: reason"; None without one."""
        return None


M = TypeVar("M", bound=Message)


class _Shape(records.Record):
    """The wire form of one message class."""

    __slots__ = ("__dict__",)  # for cached_property
    message: type[Message]
    keys: tuple[str, ...] | None
    """Keys of a payload that is a map; None for an array. A key whose value is None is not sent."""
    longest: int
    """Limit in bytes of a payload."""
    grows: bool
    """Later versions may append items, which are ignored. A last item that is None is not sent."""

    @cached_property
    def fields(self) -> tuple[tuple[str, Codec], ...]:
        """Names and codecs of the fields, read from the annotations on first use: most sessions use a third
        of the messages."""
        names = records.field_names(self.message)
        texts = [self.message.__annotations__[name] for name in names]
        known = vars(sys.modules[self.message.__module__])
        # A name is looked up: each eval takes 0.05 ms. One eval for all other fields. Annotated evaluates to
        # the codec (rdc/lean/typed.py).
        formulas = "".join([f"{text}, " for text in texts if text not in known])
        values = iter(eval(f"({formulas})", known))  # noqa: S307 - the source of this package
        codecs: list[Codec] = [known[text] if text in known else next(values) for text in texts]
        return tuple((name, codec) for name, codec in zip(names, codecs, strict=True))

    @cached_property
    def content(self) -> bool:
        """Return whether the last field is Content."""
        return bool(self.fields) and isinstance(self.fields[-1][1], Content)

    # A session of small files has thousands of messages of a few kinds. Facts about a kind are cached, and a
    # field without a check costs no call.

    @cached_property
    def values(self) -> Callable[[Message], tuple[Any, ...]]:
        """A function that returns the fields of a message."""
        names = [name for name, _ in self.fields]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda message: tuple([getattr(message, name) for name in names])

    @cached_property
    def packers(self) -> tuple[tuple[int, Callable[[Any], object]], ...]:
        """Fields whose values are converted or checked before they are packed."""
        return tuple(
            (row, codec.pack) for row, (_, codec) in enumerate(self.fields) if not isinstance(codec, _AS_IS)
        )

    @cached_property
    def integers(self) -> tuple[tuple[int, int, int], ...]:
        """Integer fields as (row, lowest, highest)."""
        return tuple(
            (row, codec.lowest, codec.highest)
            for row, (_, codec) in enumerate(self.fields)
            if isinstance(codec, Integer)
        )

    @cached_property
    def flags(self) -> tuple[int, ...]:
        """The rows of the fields that are flags."""
        return tuple(row for row, (_, codec) in enumerate(self.fields) if isinstance(codec, Flag))

    @cached_property
    def unpackers(self) -> tuple[tuple[int, Callable[[object], Any]], ...]:
        """All other fields as (row, unpack)."""
        return tuple(
            (row, codec.unpack)
            for row, (_, codec) in enumerate(self.fields)
            if not isinstance(codec, Integer | Flag)
        )

    @cached_property
    def checks(self) -> bool:
        """Return whether the class checks its fields against each other."""
        return self.message.check is not Message.check


_AS_IS = (Integer, Flag, Path, Word)
"""Codecs that pack a value unchanged."""

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


def message(
    kind: int,
    *,
    by: tuple[Role, ...],
    when: State | tuple[State, ...],
    then: State | Mapping[Role, State] | None = None,
    needs: State | None = None,
    moves: tuple[State, State] | None = None,
    asks: str | None = None,
    answers: type[Message] | tuple[type[Message], ...] = (),
    purpose: Purpose = Purpose.OVERHEAD,
    feature: str | None = None,
    since: int | None = None,
    keys: tuple[str, ...] | None = None,
    longest: int = FRAME_BYTES,
    grows: bool = False,
) -> Callable[[type[M]], type[M]]:
    """Class decorator that declares a message: `class X(Message, Record):`.

    kind: its type number. by ... since: its place, as in Place. keys: those of a payload that is a map.
    longest: bytes of a payload. grows: later versions may append fields.

    Each field is annotated with its codec, Annotated[type, codec]; the order of the fields is the order on
    the wire.
    """
    place = Place(
        by,
        when if isinstance(when, tuple) else (when,),
        then,
        needs,
        moves,
        asks,
        answers if isinstance(answers, tuple) else (answers,),
        purpose,
        feature,
        since,
    )

    def register(cls: type[M]) -> type[M]:
        if kind in _SHAPES:
            raise TypeError(f"type {kind} of {cls.__name__} is taken")
        _SHAPES[kind] = _Shape(cls, keys, longest, grows)
        cls.kind = kind
        cls.name = cls.__name__
        cls.place = place
        return cls

    return register


def message_kinds() -> dict[int, type[Message]]:
    """Type number to class, for every declared message."""
    return {kind: shape.message for kind, shape in _SHAPES.items()}


def answers_to(*requests: type[Message]) -> tuple[type[Message], ...]:
    """Return the messages that answer any of these requests."""
    kinds = message_kinds().values()
    return tuple(kind for kind in kinds if not set(requests).isdisjoint(kind.place.answers))


def field_names(kind: int) -> tuple[str, ...]:
    """Return the fields of a message in wire order."""
    return tuple(name for name, _ in _SHAPES[kind].fields)


def encode(message: Message, packer: msgpack.Packer | None = None) -> bytes:
    """Return the payload of a message. Raises ValueError if it exceeds the protocol's limits, which is the
    caller's mistake."""
    head, content = encode_parts(message, packer)
    return b"".join((head, content)) if content else head


def encode_parts(message: Message, packer: msgpack.Packer | None = None) -> tuple[bytes, bytes | memoryview]:
    """Return the payload in two parts: the packed fields, and the message's own content without a copy."""
    shape = _SHAPES[message.kind]
    problem = message.check() if shape.checks else None
    if problem is not None:
        raise ValueError(f"{message.name}.{problem}")
    values = list(shape.values(message))
    for row, pack in shape.packers:
        values[row] = pack(values[row])
    content = values.pop() if shape.content else b""
    while shape.grows and values[-1] is None:
        values.pop()
    payload: bytes = (packer or msgpack.Packer(use_bin_type=True)).pack(
        values
        if shape.keys is None
        else {key: value for key, value in zip(shape.keys, values, strict=True) if value is not None}
    )
    if shape.content:
        payload = encode_varint(len(payload)) + payload
    size = len(payload) + len(content)
    if size > shape.longest:
        raise ValueError(f"{message.name} has {size} bytes, the limit is {shape.longest}")
    return payload, content


def decode(kind: int, payload: bytes | memoryview) -> Message:
    """Return the message of a payload, with every field checked: a frozen value that the rest of rdc trusts.

    ProtocolError names the message and the field.
    """
    # One function on purpose: a session decodes thousands of messages, and each call costs as much as a
    # field.
    shape = _SHAPES.get(kind)
    if shape is None:
        raise ProtocolError(f"the remote side sent a message of unknown type {kind}")
    name = shape.message.name
    if len(payload) > shape.longest:
        raise ProtocolError(
            f"the remote side sent a {name} of {len(payload)} bytes, the limit is {shape.longest}"
        )
    content = None
    if shape.content:
        payload, content = _split_payload(name, memoryview(payload))
    try:
        raw = _unpack(payload, object_hook=_no_map if shape.keys is None else None)
    except (ValueError, TypeError) as error:
        raise ProtocolError(
            f"the remote side sent a {name} that is not msgpack within limits ({error})"
        ) from error
    row = -1
    try:
        values: list[Any] = list(_raw_values(shape, raw))
        if content is not None:
            values.append(content)
        for row, lowest, highest in shape.integers:
            value = values[row]
            # type() and not isinstance(), since True is an int. The codec finds the reason, and accepts None
            # where it may.
            if type(value) is not int or not lowest <= value <= highest:
                values[row] = shape.fields[row][1].unpack(value)
        for row in shape.flags:
            if type(values[row]) is not bool:
                values[row] = shape.fields[row][1].unpack(values[row])
        for row, unpack in shape.unpackers:
            values[row] = unpack(values[row])
    except ValueError as error:
        field = "payload" if row < 0 else shape.fields[row][0]
        raise ProtocolError(f"the remote side sent a bad {name}.{field}: {error}") from error
    message = shape.message(*values)
    problem = message.check() if shape.checks else None
    if problem is not None:
        raise ProtocolError(f"the remote side sent a bad {name}.{problem}")
    return message


def _split_payload(name: str, payload: memoryview) -> tuple[memoryview, memoryview]:
    """Return the msgpack part of a payload, and the content after it."""
    head = decode_varint(payload, 0, FRAME_BYTES, f"a length in a {name}")
    if head is None or head[0] > len(payload) - head[1]:
        raise ProtocolError(f"the remote side sent a {name} that ends before its content")
    length, start = head
    return payload[start : start + length], payload[start + length :]


def _no_map(_pairs: object) -> NoReturn:
    # An empty map is one byte to send and takes 64 bytes to keep.
    raise ValueError("a map")


def _raw_values(shape: _Shape, raw: object) -> tuple[object, ...]:
    if shape.keys is not None:
        pairs = of_type(raw, dict)
        return tuple(map(pairs.get, shape.keys))
    items = raw if type(raw) is tuple else of_type(raw, tuple)
    expected = len(shape.fields) - shape.content
    if shape.grows:
        required = sum(not getattr(codec, "optional", False) for _, codec in shape.fields)
        if len(items) >= required:
            items = (*items, *[None] * (expected - len(items)))[:expected]
    if len(items) != expected:
        raise ValueError(f"expected {expected} fields, found {len(items)}")
    return items
