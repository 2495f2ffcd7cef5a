"""The pages about extended attributes and hard links that two sides exchange, where they take part.

Each set is once in a page. Whatever a peer sends is checked here, before anybody relies on it.
"""

from __future__ import annotations

from itertools import pairwise

from rdc.lean.records import Record
from rdc.limits import ATTRIBUTE_SET_BYTES
from rdc.model.preserved import pack_attributes, unpack_attributes
from rdc.uniting.exchanged import Columns, int_column, packed_columns, parts_columns, path_column
from rdc.uniting.rows import DIGEST_BYTES, MODE_BITS
from rdc.uniting.ties import grouped, groups_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.uniting.attributes import AttributeSets


class Given(Record):
    """A set that the answerer is to give to an entry."""

    path: bytes
    is_new: bool
    """True if a step of the run makes the entry."""
    wanted: bytes
    """The digest of the set; b"" for none."""
    mode: int
    """The mode that the entry has with the set. A page has it if ACLs take part; without them it is 0, and
    the entry keeps its mode."""


def _sets_of(digests: Sequence[bytes], sets: AttributeSets) -> tuple[list[int], list[bytes]]:
    """Return the number of each set, from 1 on, 0 for none; and these sets."""
    numbers: dict[bytes, int] = {b"": 0}
    found = [numbers.setdefault(digest, len(numbers)) for digest in digests]
    return found, [pack_attributes(sets.of(digest)) for digest in numbers if digest]


def _numbered(columns: Columns, count: int, sets: AttributeSets) -> list[bytes]:
    """Read what `_sets_of` returns, as digests. Raises ValueError, and RdcError for too many bytes."""
    numbers = columns.ints("I", count, most=count)
    packed = columns.parts(max(numbers, default=0), ATTRIBUTE_SET_BYTES)
    digests = [b""]
    for each in packed:
        attributes = unpack_attributes(each)
        if not attributes or not all(sets.kinds.has(name) for name, _ in attributes):
            raise ValueError("a set of attributes that take no part")
        digests.append(sets.add(attributes))
    return [digests[number] for number in numbers]


def pack_sets(found: Mapping[bytes, bytes], sets: AttributeSets) -> bytes:
    """Return the sets of a tree as a page. `found`: the digest of each entry that has one, by path."""
    paths = sorted(found)
    numbers, packed = _sets_of([found[path] for path in paths], sets)
    return packed_columns(path_column(paths), int_column("I", numbers), *parts_columns(packed))


def unpack_sets(page: bytes, sets: AttributeSets) -> dict[bytes, bytes]:
    """Read the sets of a tree, and hold them in `sets`."""
    columns = Columns(page, 4)
    paths = columns.paths()
    if any(one >= other for one, other in pairwise(paths)):
        raise ValueError("paths do not rise")
    found = dict(zip(paths, _numbered(columns, len(paths), sets), strict=True))
    if b"" in found.values():
        raise ValueError("an entry without a set")
    return found


def pack_given(given: Sequence[Given], sets: AttributeSets) -> bytes:
    """Return the sets that the answerer gives to entries as a page."""
    numbers, packed = _sets_of([each.wanted for each in given], sets)
    columns = [
        path_column([each.path for each in given]),
        bytes(each.is_new for each in given),
        int_column("I", numbers),
        *parts_columns(packed),
    ]
    if sets.has_acls:
        columns.append(int_column("H", [each.mode for each in given]))
    return packed_columns(*columns)


def unpack_given(page: bytes, sets: AttributeSets) -> tuple[Given, ...]:
    """Read the sets that the answerer gives to entries, and hold them in `sets`."""
    columns = Columns(page, 5 + sets.has_acls)
    paths = columns.paths()
    news = columns.blob(len(paths))
    if len(set(paths)) != len(paths) or news.strip(b"\0\1"):
        raise ValueError("an entry gets two sets, or is neither new nor old")
    digests = _numbered(columns, len(paths), sets)
    modes = columns.ints("H", len(paths), most=MODE_BITS) if sets.has_acls else [0] * len(paths)
    return tuple(
        Given(path, bool(new), digest, mode)
        for path, new, digest, mode in zip(paths, news, digests, modes, strict=True)
    )


def pack_unset(unset: Mapping[bytes, bool]) -> bytes:
    """Return paths whose sets were not set, and whether each entry still has its former one, as a page."""
    return packed_columns(path_column(list(unset)), bytes(unset.values()))


def unpack_unset(page: bytes) -> dict[bytes, bool]:
    """Read paths whose sets were not set."""
    columns = Columns(page, 2)
    paths = columns.paths()
    keeps = columns.blob(len(paths))
    if keeps.strip(b"\0\1"):
        raise ValueError("whether a set is kept")
    return {path: bool(kept) for path, kept in zip(paths, keeps, strict=True)}


_UNAGREED, _HAS_NONE, _HAS_SET = range(3)


def pack_agreed_sets(digests: Sequence[bytes | None]) -> bytes:
    """Return what is agreed about the rows of the next ancestor, in order of paths, as a page."""
    states = bytes([_UNAGREED if each is None else _HAS_SET if each else _HAS_NONE for each in digests])
    return packed_columns(states, b"".join([each for each in digests if each]))


def unpack_agreed_sets(page: bytes, paths: Sequence[bytes]) -> dict[bytes, bytes]:
    """Read what is agreed about these rows; those of which nothing is are left out."""
    columns = Columns(page, 2)
    states = columns.blob(len(paths))
    if states.strip(bytes((_UNAGREED, _HAS_NONE, _HAS_SET))):
        raise ValueError("what is agreed about attributes")
    digests = columns.blob(DIGEST_BYTES * states.count(_HAS_SET))
    found: dict[bytes, bytes] = {}
    at = 0
    for path, state in zip(paths, states, strict=True):
        if state == _HAS_SET:
            found[path] = digests[at : at + DIGEST_BYTES]
            at += DIGEST_BYTES
        elif state == _HAS_NONE:
            found[path] = b""
    return found


def pack_ties(ties: Mapping[bytes, int] | None) -> bytes:
    """Return the names that share a file as a page; None: this side can have no hard links."""
    some = ties or {}
    return packed_columns(
        bytes([ties is not None]), path_column(list(some)), int_column("I", list(some.values()))
    )


def unpack_ties(page: bytes) -> dict[bytes, int] | None:
    """Read the names that share a file; None: the other side can have no hard links."""
    columns = Columns(page, 3)
    takes_part = columns.blob(1)
    paths = columns.paths()
    numbers = columns.ints("I", len(paths), most=max(len(paths) - 1, 0))
    if takes_part not in (b"\0", b"\1") or len(set(paths)) != len(paths):
        raise ValueError("a name of two files, or whether there are any")
    found = dict(zip(paths, numbers, strict=True))
    if found != grouped(groups_of(found)) or (found and takes_part == b"\0"):
        raise ValueError("files that have several names each, in order of their first names")
    return found if takes_part == b"\1" else None
