"""The parts behind -X and -A: sets of attributes, messages of peers that lie about them, one entry."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ProtocolError, RdcError
from rdc.files.facts.xattrs import read_entry_attributes, write_entry_attributes
from rdc.files.root.root import Root
from rdc.limits import ATTRIBUTE_SET_BYTES, FILES_PER_MESSAGE
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import (
    ACCESS_ACL,
    ACCESS_TIME,
    EVERYTHING,
    UNREADABLE,
    AttributeKinds,
    bits_before_acl,
    pack_attributes,
    unpack_attributes,
)
from rdc.protocol.messages import Describe, EntryAttributes, Start, encode
from rdc.protocol.sequence import TreeTotals
from rdc.protocol.wire.codec import Illegal
from rdc.session.trees.wanted_xattrs import WantedXattrs
from tests.support.trees.xattrs_and_acls import ALL, GROUP_OBJ, NOBODY, OTHER, USER_OBJ, acl, allow, give

# Peers that lie


def test_sets_have_one_form() -> None:
    pairs = ((b"user.a", b"1"), (b"user.b", b""))
    assert pack_attributes(pairs[::-1]) == pack_attributes(pairs)
    assert pack_attributes(()) == b""


@given(
    st.dictionaries(st.binary(min_size=1, max_size=255).filter(lambda n: b"\0" not in n), st.binary()),
    st.binary(min_size=8, max_size=8),
)
def test_sets_come_back(attributes: dict[bytes, bytes], time: bytes) -> None:
    """All names but that of the access time have any values."""
    if ACCESS_TIME in attributes:
        attributes[ACCESS_TIME] = time
    pairs = tuple(sorted(attributes.items()))
    assert unpack_attributes(pack_attributes(pairs)) == pairs


@given(st.binary(max_size=60))
def test_whatever_is_unpacked_packs_to_the_same(packed: bytes) -> None:
    try:
        pairs = unpack_attributes(packed)
    except ValueError:
        return
    assert pack_attributes(pairs) == packed


@pytest.mark.parametrize(
    "packed",
    [
        UNREADABLE,
        b"\1a",
        b"\1a\1\0\0\0",
        b"\1a\0\0\0\0" * 2,
        b"\1b\0\0\0\0\1a\0\0\0\0",
        b"\2a\0\0\0\0\0",
        b"\1a\xff\xff\xff\xff",
        b"\1a\1\0\1\0" + bytes(65_537),
        b"\1a\0\0\0\0" + bytes(ATTRIBUTE_SET_BYTES),
    ],
)
def test_malformed_sets(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"set|name"):
        unpack_attributes(packed)


def test_what_a_mode_may_let_others_do_before_an_acl_is_there() -> None:
    assert bits_before_acl(acl(7, group=5)) == 0o57
    assert bits_before_acl(acl(7, group=0)) == 0o07
    assert bits_before_acl(acl(7, group=5, mask=4)) == 0o44
    # The named user may be in the group, or one of the others.
    assert bits_before_acl(acl(4, group=7, other=5)) == 0o44
    assert bits_before_acl(acl(0, group=7, other=5)) == 0
    unnamed = b"\2\0\0\0" + b"".join(
        struct.pack("<HHI", tag, may, NOBODY) for tag, may in ((USER_OBJ, 6), (GROUP_OBJ, 4), (OTHER, 0))
    )
    assert bits_before_acl(unnamed) == 0o47
    named_group = unnamed + struct.pack("<HHI", 8, 1, 1234)
    assert bits_before_acl(named_group) == 0o41
    for odd in (b"", b"\1\0\0\0", acl(7, group=5)[:-30], b"\2\0\0\0" + bytes(7)):
        assert bits_before_acl(odd) == 0


ONE = pack_attributes(((b"user.a", b"1"),))


@pytest.mark.parametrize(
    "lie",
    [
        EntryAttributes((1, 2), (0,), (ONE,)),
        EntryAttributes((1,), (1,), (ONE,)),
        EntryAttributes((1,), (0,), ()),
        EntryAttributes((1,), (0,), (b"",)),
        EntryAttributes((1,), (0,), (ONE[:-1],)),
        EntryAttributes((1,), (0,), (ONE, *[ONE[:-1] + bytes((n,)) + ONE for n in range(3)])),
    ],
)
def test_messages_that_do_not_add_up(lie: EntryAttributes) -> None:
    with pytest.raises(ValueError, match=r"numbers|sets"):
        encode(lie)


def test_they_are_of_entries_to_come_and_bounded_by_those_that_came() -> None:
    census = TreeTotals()
    early = EntryAttributes((0, 1), (0, 0), (ONE,))
    with pytest.raises(Illegal):
        census.attribute(early)
    census.describe(Describe(True, EVERYTHING))
    with pytest.raises(Illegal):
        census.attribute(early)
    census.start(Start(b"", Kind.DIRECTORY, Metadata(0o755, 0, 0, 0)))
    census.attribute(early)
    for again in (early, EntryAttributes((1,), (0,), (ONE,))):
        with pytest.raises(Illegal):
            census.attribute(again)
    many = tuple(range(2, 2 + FILES_PER_MESSAGE))
    with pytest.raises(Illegal):
        census.attribute(EntryAttributes(many, (0,) * FILES_PER_MESSAGE, (ONE,)))


def test_kinds_that_nobody_asked_for() -> None:
    wanted = WantedXattrs(AttributeKinds.USER)
    for name in (b"trusted.a", b"security.capability", b"security.selinux", ACCESS_ACL, b"system.other"):
        with pytest.raises(ProtocolError):
            wanted.extend(EntryAttributes((1,), (0,), (pack_attributes(((name, b""),)),)))


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.session.trees.wanted_xattrs.ATTRIBUTES_PENDING_BYTES", 3 * len(ONE))
    wanted = WantedXattrs(AttributeKinds.USER)
    for ordinal in range(1, 40):
        wanted.extend(EntryAttributes((ordinal,), (0,), (ONE,)))  # one set, held once
    others = [pack_attributes(((b"user.a", b"%d" % digit),)) for digit in range(2, 6)]
    with pytest.raises(RdcError, match="leave out -X"):
        wanted.extend(EntryAttributes((50, 51, 52, 53), (0, 1, 2, 3), tuple(others)))


# One entry


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/file").write_bytes(b"1")
    (tmp_path / "r/link").symlink_to("file")
    opened = Root.open(os.fsencode(tmp_path / "r"))
    yield opened
    opened.close()


def test_a_link_is_not_followed(root: Root, tmp_path: Path) -> None:
    give(tmp_path / "r/file", a="of the file")
    directory = root.directory(b"")
    assert read_entry_attributes(directory.fd, b"link", ALL) == ()
    with pytest.raises(RdcError, match="link"):
        write_entry_attributes(root, b"link", Kind.FILE, ((b"user.a", b"2"),), ALL, 0o644)
    write_entry_attributes(root, b"link", Kind.SYMLINK, ((b"trusted.a", b"2"),), ALL, 0o644)
    assert read_entry_attributes(directory.fd, b"link", ALL) == ((b"trusted.a", b"2"),)
    assert read_entry_attributes(directory.fd, b"file", ALL) == ((b"user.a", b"of the file"),)


def test_where_an_acl_goes_the_mode_holds_again(root: Root, tmp_path: Path) -> None:
    allow(tmp_path / "r/file", acl(7, group=0, mask=7))
    assert stat.S_IMODE((tmp_path / "r/file").stat().st_mode) & 0o70 == 0o70
    write_entry_attributes(root, b"file", Kind.FILE, (), ALL, 0o604)
    assert stat.S_IMODE((tmp_path / "r/file").stat().st_mode) == 0o604


def test_only_what_is_meant_gets_them(root: Root, tmp_path: Path) -> None:
    """Somebody saves another file in its place between the look and the setting."""
    here = (tmp_path / "r/file").stat()
    (tmp_path / "r/other").write_bytes(b"2")
    (tmp_path / "r/other").rename(tmp_path / "r/file")
    with pytest.raises(RdcError, match="another"):
        write_entry_attributes(
            root,
            b"file",
            Kind.FILE,
            ((b"user.a", b"2"),),
            ALL,
            0o644,
            is_meant=lambda now: now.st_ino == here.st_ino,
        )
    assert os.listxattr(tmp_path / "r/file") == []
