"""Every message of the protocol: its fields, their form on the wire, and its type number.

A field's annotation carries its codec; decode() checks everything once and returns a frozen value that the
rest of rdc trusts. "S" is the source's side, "D" the destination's, whoever of them dialled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, get_type_hints

import msgpack  # type: ignore[import-untyped]

from rdc.errors import ExitCode, ProtocolError
from rdc.limits import (
    CHUNK_MIN_LIMIT,
    DATA_BYTES,
    FILES_PER_MESSAGE,
    FRAME_BYTES,
    MESSAGE_BYTES,
    NODE_BYTES,
    NODES_PER_MESSAGE,
    ORDINAL_LIMIT,
    RANGES_PER_MESSAGE,
    RECORDS_BYTES,
    SIZE_LIMIT,
    SOFTWARE_BYTES,
    TREE_HEIGHT,
)
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.sync import SyncOptions
from rdc.protocol.fields import (
    Blob,
    Codec,
    Column,
    Flag,
    Gaps,
    Integer,
    Member,
    Options,
    Parts,
    Path,
    Text,
    Word,
    of_type,
)
from rdc.protocol.listings import ListingColumns

__all__ = [
    "PROTOCOL_VERSION",
    "Bye",
    "Data",
    "Done",
    "FileEnd",
    "FileFailed",
    "FileRequest",
    "Hello",
    "Item",
    "ListingEnd",
    "ListingPart",
    "Message",
    "NodeAnswer",
    "NodeRequest",
    "Notice",
    "Open",
    "Opened",
    "Plan",
    "Progress",
    "RangeRequest",
    "Refused",
    "Role",
    "RootAnswer",
    "RootRequest",
    "Start",
    "TreeAnswer",
    "TreeRequest",
    "decode",
    "encode",
    "message_kinds",
]

PROTOCOL_VERSION = 1
"""Sent in the preamble and in Hello. Any change that an older rdc would not understand raises it."""

PARAMETER_ID_BYTES = 32
SECRET_BYTES = 16
ROOT_BYTES = 32
REFERENCE_WIDTHS = (4, 32)
ID_LIMIT = (1 << 32) - 1

# msgpack allocates an array when it has read its head: with arrays this short, the deepest nesting it
# accepts (1,024) allocates 128 KiB. Many values travel in one binary field instead (columns.py).
ARRAY_ITEMS = 16
HELLO_KEYS = 64

Ordinal: TypeAlias = Annotated[int, Integer(highest=ORDINAL_LIMIT)]
Size: TypeAlias = Annotated[int, Integer()]
Count: TypeAlias = Annotated[int, Integer()]
Root: TypeAlias = Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES)]
Files: TypeAlias = Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
Nodes: TypeAlias = Annotated[tuple[int, ...], Gaps(NODES_PER_MESSAGE, ORDINAL_LIMIT)]
Line: TypeAlias = Annotated[str, Text(MESSAGE_BYTES)]
Code: TypeAlias = Annotated[ExitCode, Member(ExitCode)]
Failure: TypeAlias = Annotated[ExitCode, Member(ExitCode, without=(ExitCode.OK,))]
Width: TypeAlias = Annotated[int, Integer(*REFERENCE_WIDTHS)]
Mtime: TypeAlias = Annotated[int | None, Integer(-SIZE_LIMIT - 1, SIZE_LIMIT, optional=True)]
"""Nanoseconds; None: the listed one. A file that was changed after its listing travels with its new mtime."""
Level: TypeAlias = Annotated[int, Integer(0, TREE_HEIGHT)]


class Role(IntEnum):
    """Which end of the copy a side is."""

    SOURCE = 0
    DESTINATION = 1

    @property
    def other(self) -> Role:
        return Role(1 - self)


class _Message:
    """What all messages share; `kind` and `name` are set by the registry."""

    __slots__ = ()
    kind: ClassVar[int]
    name: ClassVar[str]

    def check(self) -> str | None:
        """What is wrong between fields that are each right, as "field: reason"."""
        return None


M = TypeVar("M", bound=type[_Message])


@dataclass(frozen=True, slots=True)
class _Shape:
    message: type[_Message]
    fields: tuple[tuple[str, Codec], ...]
    keys: tuple[str, ...] | None
    """Keys of a payload that is a map; None: the payload is an array."""


_SHAPES: dict[int, _Shape] = {}


def _message(kind: int, keys: tuple[str, ...] | None = None) -> Callable[[M], M]:
    def register(cls: M) -> M:
        hints = get_type_hints(cls, include_extras=True)
        codecs = tuple((f.name, hints[f.name].__metadata__[0]) for f in fields(cls))  # type: ignore[arg-type]
        if kind in _SHAPES:
            raise TypeError(f"type {kind} of {cls.__name__} is taken")
        _SHAPES[kind] = _Shape(cls, codecs, keys)
        cls.kind = kind
        cls.name = cls.__name__
        return cls

    return register


@_message(0, keys=("v", "s", "p"))
@dataclass(frozen=True, slots=True)
class Hello(_Message):
    """Both sides, first, in the preamble's raw block; unknown keys are ignored."""

    version: Annotated[int, Integer(0, 255)]
    """The protocol's, as in the preamble."""
    software: Annotated[str, Text(SOFTWARE_BYTES)]
    """Name and version of the program, to be shown only."""
    params: Annotated[bytes, Blob(PARAMETER_ID_BYTES, PARAMETER_ID_BYTES)]
    """Id of all chunking and signature parameters: roots and records compare only under the same."""


@_message(1)
@dataclass(frozen=True, slots=True)
class Open(_Message):
    """Dialler, right after its Hello without waiting: what the session is about."""

    role: Annotated[Role, Member(Role)]
    """The one the answerer takes."""
    path: Annotated[bytes, Path()]
    """The answerer's root, as its user would write it; b'' is the directory it was started in."""
    secret: Annotated[bytes, Blob(SECRET_BYTES, SECRET_BYTES)]
    """Key of the short references in this session."""
    options: Annotated[SyncOptions, Options()]


@_message(2)
@dataclass(frozen=True, slots=True)
class Opened(_Message):
    """Answerer, after its Hello: it takes the role."""

    root_kind: Annotated[Kind | None, Member(Kind, optional=True)]
    """None: nothing is at the path."""
    own_euid_is_root: Annotated[bool, Flag()]


@_message(3)
@dataclass(frozen=True, slots=True)
class Refused(_Message):
    """Either side, any time: the session is over, for this reason."""

    code: Failure
    message: Line


@_message(23)
@dataclass(frozen=True, slots=True)
class Start(_Message):
    """S, first: what is going to be listed."""

    only: Annotated[bytes, Path(inside=True)]
    """Of the one entry that the root's listing holds; b'': the root's contents are listed."""
    entry: Annotated[Kind, Member(Kind)]
    """Kind of that entry, or of the root."""
    mode: Annotated[int, Integer(0, 0o7777)]
    mtime_ns: Annotated[int, Integer(-SIZE_LIMIT - 1, SIZE_LIMIT)]
    uid: Annotated[int, Integer(0, ID_LIMIT)]
    gid: Annotated[int, Integer(0, ID_LIMIT)]

    @property
    def metadata(self) -> Metadata:
        """Of that entry, or of the root."""
        return Metadata(self.mode, self.mtime_ns, self.uid, self.gid)

    def check(self) -> str | None:
        if b"/" in self.only:
            return f"only: {len(self.only)} bytes with a '/'"
        if not self.only and self.entry is not Kind.DIRECTORY:
            return "entry: the root is no directory"
        return None


@_message(4)
@dataclass(frozen=True, slots=True)
class ListingPart(_Message):
    """S: some or all entries of one directory, in order."""

    directory: Ordinal
    """Directories count from 0 in the order of their listings; 0 is the root."""
    path: Annotated[bytes, Path(inside=True)]
    """Of the directory, relative to the root."""
    first: Ordinal
    """Ordinal of the first entry here: entries count from 0 over all listings of the session."""
    last: Annotated[bool, Flag()]
    """The directory is complete."""
    listing: Annotated[Listing, ListingColumns()]

    def check(self) -> str | None:
        if not self.listing and not self.last:
            return "last: a part without entries that is not the last"
        if self.first + len(self.listing) > ORDINAL_LIMIT:
            return f"first: {len(self.listing)} entries from {self.first} pass {ORDINAL_LIMIT}"
        return None


@_message(5)
@dataclass(frozen=True, slots=True)
class ListingEnd(_Message):
    """S: every directory was listed; the totals of what was."""

    directories: Count
    entries: Count
    files: Count
    """Regular files."""
    bytes: Size
    """Sum of their sizes."""
    read_errors: Count
    """Directories and entries that could not be read and are missing from the listing."""


@_message(6)
@dataclass(frozen=True, slots=True)
class RootRequest(_Message):
    """D: the root digests of these files."""

    files: Files


@_message(7)
@dataclass(frozen=True, slots=True)
class RootAnswer(_Message):
    """S: some or all files of the oldest RootRequest; those that failed come as FileFailed."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    roots: Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES * FILES_PER_MESSAGE)]
    """32 bytes a file, in the order of `files`."""

    def root(self, row: int) -> bytes:
        return self.roots[row * ROOT_BYTES : (row + 1) * ROOT_BYTES]

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if len(self.roots) != ROOT_BYTES * len(self.files):
            return f"roots: {len(self.roots)} bytes for {len(self.files)} files"
        return None


@_message(8)
@dataclass(frozen=True, slots=True)
class TreeRequest(_Message):
    """D: the top of the signature trees of these files."""

    files: Files
    width: Width
    """Bytes of a reference in the answers."""


@_message(9)
@dataclass(frozen=True, slots=True)
class TreeAnswer(_Message):
    """S: one file of the oldest TreeRequest."""

    file: Ordinal
    size: Size
    root: Root
    height: Level
    mtime_ns: Mtime
    records: Annotated[bytes, Blob(0, RECORDS_BYTES)]
    """Opaque here: the signature format says what they hold."""


@_message(10)
@dataclass(frozen=True, slots=True)
class NodeRequest(_Message):
    """D: the children of these nodes of a file's tree."""

    file: Ordinal
    level: Level
    nodes: Nodes
    width: Width
    """Bytes of a reference in the answer."""


@_message(11)
@dataclass(frozen=True, slots=True)
class NodeAnswer(_Message):
    """S: the next nodes of the oldest NodeRequest, in its order."""

    file: Ordinal
    level: Level
    nodes: Nodes
    records: Annotated[tuple[bytes, ...], Parts(NODES_PER_MESSAGE, NODE_BYTES)]
    """Opaque, one a node."""

    def check(self) -> str | None:
        if len(self.records) != len(self.nodes):
            return f"records: {len(self.records)} for {len(self.nodes)} nodes"
        return None


@_message(12)
@dataclass(frozen=True, slots=True)
class RangeRequest(_Message):
    """D: these bytes of a file, in this order."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    """Bytes between the end of the range before (or the file's start) and each range: increasing and disjoint
    by construction."""
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]

    @classmethod
    def of(cls, file: int, ranges: tuple[tuple[int, int], ...]) -> RangeRequest:
        """From increasing, disjoint (offset, length) pairs."""
        gaps = []
        end = 0
        for offset, length in ranges:
            gaps.append(offset - end)
            end = offset + length
        return cls(file, tuple(gaps), tuple(length for _, length in ranges))

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(offset, length) pairs."""
        found = []
        end = 0
        for gap, length in zip(self.gaps, self.lengths, strict=True):
            found.append((end + gap, length))
            end += gap + length
        return tuple(found)

    def check(self) -> str | None:
        if not self.gaps or len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if sum(self.gaps) + sum(self.lengths) > SIZE_LIMIT:
            return f"lengths: the last range ends past {SIZE_LIMIT}"
        return None


@_message(13)
@dataclass(frozen=True, slots=True)
class FileRequest(_Message):
    """D: these files whole."""

    files: Files


@_message(14)
@dataclass(frozen=True, slots=True)
class Data(_Message):
    """S: the next bytes of a file or of its ranges."""

    file: Ordinal
    payload: Annotated[bytes, Blob(1, DATA_BYTES)]
    chunks: Annotated[tuple[int, ...], Column(DATA_BYTES // CHUNK_MIN_LIMIT + 1, lowest=1)] = ()
    """Whole files: the lengths of the chunks that make up the payload. Ranges: empty."""

    def check(self) -> str | None:
        if self.chunks and sum(self.chunks) != len(self.payload):
            return f"chunks: lengths add up to {sum(self.chunks)}, the payload has {len(self.payload)} bytes"
        return None


@_message(15)
@dataclass(frozen=True, slots=True)
class FileEnd(_Message):
    """S: all Data of the request for this file was sent."""

    file: Ordinal
    size: Size
    """Bytes of Data since the request: of a whole file, its size."""
    root: Annotated[bytes, Blob(0, ROOT_BYTES)] = b""
    """Whole files: the root digest of what was sent. Ranges: empty."""
    mtime_ns: Mtime = None

    def check(self) -> str | None:
        if len(self.root) not in {0, ROOT_BYTES}:
            return f"root: {len(self.root)} bytes"
        return None


@_message(16)
@dataclass(frozen=True, slots=True)
class FileFailed(_Message):
    """S, in place of an answer about this file."""

    file: Ordinal
    code: Failure
    message: Line


@_message(17)
@dataclass(frozen=True, slots=True)
class Notice(_Message):
    """Either side: a problem with one path that the other side's user must see; the session goes on."""

    code: Code
    """OK: does not change the exit code."""
    path: Annotated[bytes, Path()]
    message: Line


@_message(18)
@dataclass(frozen=True, slots=True)
class Item(_Message):
    """D: an entry was changed (or would be)."""

    change: Annotated[str, Word(length=11)]
    path: Annotated[bytes, Path()]
    target: Annotated[bytes | None, Path(optional=True)] = None


@_message(19)
@dataclass(frozen=True, slots=True)
class Progress(_Message):
    """D: how far it is."""

    phase: Annotated[str, Word(choices=("compare", "transfer", "delete"))]
    done: Count
    total: Annotated[int | None, Integer(optional=True)]


@_message(20)
@dataclass(frozen=True, slots=True)
class Plan(_Message):
    """D: what it will do."""

    files: Count
    bytes: Size
    deletes: Count


@_message(21)
@dataclass(frozen=True, slots=True)
class Done(_Message):
    """D: nothing more is wanted; its result."""

    changed: Count
    deleted: Count
    literal_bytes: Size
    reused_bytes: Size
    errors: Count
    code: Code


@_message(22)
@dataclass(frozen=True, slots=True)
class Bye(_Message):
    """S: the last message, after Done."""

    read_errors: Count
    code: Code


Message: TypeAlias = (
    Hello
    | Start
    | Open
    | Opened
    | Refused
    | ListingPart
    | ListingEnd
    | RootRequest
    | RootAnswer
    | TreeRequest
    | TreeAnswer
    | NodeRequest
    | NodeAnswer
    | RangeRequest
    | FileRequest
    | Data
    | FileEnd
    | FileFailed
    | Notice
    | Item
    | Progress
    | Plan
    | Done
    | Bye
)


def message_kinds() -> dict[int, type[Message]]:
    """Type number to class, for every message."""
    return {kind: shape.message for kind, shape in _SHAPES.items()}  # type: ignore[misc]


def field_names(kind: int) -> tuple[str, ...]:
    """The fields of a message in wire order; a map's keys in the same order are `v`, `s`, `p`."""
    return tuple(name for name, _ in _SHAPES[kind].fields)


def encode(message: Message, packer: msgpack.Packer | None = None) -> bytes:
    """The payload. ValueError when the message breaks the protocol's bounds: the caller's mistake."""
    shape = _SHAPES[message.kind]
    problem = message.check()
    if problem is not None:
        raise ValueError(f"{message.name}.{problem}")
    values = [codec.pack(getattr(message, name)) for name, codec in shape.fields]
    payload: bytes = (packer or msgpack.Packer(use_bin_type=True)).pack(
        values if shape.keys is None else dict(zip(shape.keys, values, strict=True))
    )
    if len(payload) > FRAME_BYTES:
        raise ValueError(f"{message.name} has {len(payload)} bytes, the limit is {FRAME_BYTES}")
    return payload


def decode(kind: int, payload: bytes) -> Message:
    """The message, every field checked. Raises ProtocolError that names message and field."""
    shape = _SHAPES.get(kind)
    if shape is None:
        raise ProtocolError(f"the far side sent a message of unknown type {kind}")
    name = shape.message.name
    try:
        raw = msgpack.unpackb(
            payload,
            use_list=False,
            max_array_len=ARRAY_ITEMS,
            max_map_len=0 if shape.keys is None else HELLO_KEYS,
            max_str_len=MESSAGE_BYTES,
            max_bin_len=FRAME_BYTES,
            max_ext_len=0,
        )
    except (ValueError, TypeError) as error:
        raise ProtocolError(
            f"the far side sent a {name} that is not msgpack within limits ({error})"
        ) from error
    field = "payload"
    try:
        values: list[Any] = list(_raw_values(shape, raw))
        for row, (field, codec) in enumerate(shape.fields):  # noqa: B007 - named in the error below
            values[row] = codec.unpack(values[row])
    except ValueError as error:
        raise ProtocolError(f"the far side sent a bad {name}.{field}: {error}") from error
    message = shape.message(*values)
    problem = message.check()
    if problem is not None:
        raise ProtocolError(f"the far side sent a bad {name}.{problem}")
    return message  # type: ignore[return-value]


def _raw_values(shape: _Shape, raw: object) -> tuple[object, ...]:
    if shape.keys is not None:
        pairs = of_type(raw, dict)
        return tuple(map(pairs.get, shape.keys))
    items = of_type(raw, tuple)
    if len(items) != len(shape.fields):
        raise ValueError(f"expected {len(shape.fields)} fields, found {len(items)}")
    return items
