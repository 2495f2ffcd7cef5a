"""Two sides agree on a version and on features, or both refuse, and the right side is to be updated."""

from __future__ import annotations

import re
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, IncompatiblePeerError, ProtocolError
from rdc.model.sync import SyncOptions
from rdc.protocol import messages
from rdc.protocol.connection import DIALECT, Connection, Dialect, LocalProtocolError, agree
from rdc.protocol.wire.codec import ARRAY_ITEMS
from rdc.protocol.wire.options import ADDED_OPTIONS
from rdc.protocol.wire.stream import frame_head

PARAMS = b"p" * 32


def dialects() -> st.SearchStrategy[Dialect]:
    words = st.sets(st.sampled_from(["bundle", "undo", "fold", "x"]))
    return st.builds(
        lambda oldest, more, names: Dialect(oldest, oldest + more, dict.fromkeys(names, ()), {}, {}),
        st.integers(8, 14),
        st.integers(0, 3),
        words,
    )


@given(dialects(), dialects())
def test_both_sides_come_to_the_same_answer(one: Dialect, other: Dialect) -> None:
    hellos = one.hello("rdc one", PARAMS), other.hello("rdc other", PARAMS)
    common = set(range(one.oldest, one.newest + 1)) & set(range(other.oldest, other.newest + 1))
    if common:
        agreements = agree(one, *hellos), agree(other, *hellos[::-1])
        assert agreements[0] == agreements[1]
        assert agreements[0].version == max(common)
        assert agreements[0].features == one.features.keys() & other.features.keys()
        return
    for dialect, ours, theirs in ((one, *hellos), (other, *hellos[::-1])):
        with pytest.raises(IncompatiblePeerError) as caught:
            agree(dialect, ours, theirs)
        newer = dialect.newest > theirs.version
        assert str(caught.value).endswith(f"update rdc on {'the remote' if newer else 'this'} side")
        assert caught.value.code == ExitCode.INCOMPATIBLE


@given(st.integers(0, 65_535), st.none() | st.integers(0, 65_535), st.none() | st.text(max_size=300))
def test_no_hello_brings_a_side_below_its_oldest_version(
    version: int, oldest: int | None, features: str | None
) -> None:
    """Nor to a feature that it does not have."""
    hello = messages.Hello(version, "evil", PARAMS, oldest, features)
    try:
        agreement = agree(DIALECT, DIALECT.hello("rdc", PARAMS), hello)
    except IncompatiblePeerError:
        assert not (oldest or version) <= DIALECT.newest <= version
        return
    assert DIALECT.oldest <= agreement.version <= DIALECT.newest
    assert agreement.features <= DIALECT.features.keys()


def test_a_range_that_is_none_is_a_bad_message() -> None:
    with pytest.raises(ValueError, match="oldest"):
        messages.encode(messages.Hello(8, "rdc", PARAMS, oldest=9))


def ends(one: Dialect, other: Dialect) -> tuple[Connection, Connection]:
    return (
        Connection(True, one.hello("rdc", PARAMS), dialect=one),
        Connection(False, other.hello("rdc", PARAMS), dialect=other),
    )


def opened(near: Connection, far: Connection) -> None:
    near.send(messages.Open(messages.Role.SOURCE, b"x", b"s" * 16, SyncOptions()), 0)
    near.flush()
    far.receive_data(near.data_to_send())
    assert far.next() is not None
    assert far.next() is not None
    far.send(messages.Opened(), 1)
    far.flush()
    near.receive_data(far.data_to_send())
    assert near.next() is not None
    assert near.next() is not None


def test_messages_of_a_feature_that_one_side_lacks_are_in_no_session() -> None:
    plain = Dialect(9, 9, {}, {}, {})
    near, far = ends(DIALECT, plain)
    opened(near, far)
    request = messages.BundleRequest(0, (0,), 256)
    with pytest.raises(LocalProtocolError, match="not in the version or features"):
        near.send(request, 0)
    # The rules on ordinals are the remote side's as well: a sender without any rules is needed.
    near, far = ends(plain, DIALECT)
    opened(near, far)
    payload = messages.encode(request)
    body = frame_head(request.kind, 1, len(payload)) + payload
    near._absent = frozenset()
    near._blocks_out.put_raw(body)
    near.flush()
    far.receive_data(near.data_to_send())
    with pytest.raises(ProtocolError, match="BundleRequest, which is not in the version or features"):
        far.next()


def test_before_a_hello_only_messages_of_every_version_are_sent() -> None:
    young = Dialect(9, 10, {}, since={messages.Manifest: 10}, until={messages.Plan: 9})
    near, _ = ends(young, DIALECT)
    with pytest.raises(LocalProtocolError):
        near.send(messages.Plan(0, 0, 0), 0)


@pytest.mark.parametrize("needs", ["undo", "bundle undo", "undo xattr2"])
def test_a_session_that_needs_what_the_far_side_lacks_is_refused_by_name(needs: str) -> None:
    near, far = ends(DIALECT, DIALECT)
    near.send(messages.Open(messages.Role.SOURCE, b"x", b"s" * 16, SyncOptions(), needs), 0)
    near.flush()
    far.receive_data(near.data_to_send())
    far.next()
    with pytest.raises(
        IncompatiblePeerError, match=r"lacks what the session needs: .*undo.*; update rdc"
    ) as caught:
        far.next()
    assert not re.search(r"\bbundle\b", str(caught.value))


def test_what_later_versions_add_is_ignored() -> None:
    hello, open_ = (
        DIALECT.hello("rdc", PARAMS),
        messages.Open(messages.Role.SOURCE, b"x", b"s" * 16, SyncOptions()),
    )
    later = msgpack.packb({**msgpack.unpackb(messages.encode(hello)), "later": 1, "q": b"x" * 100})
    assert messages.decode(messages.Hello.kind, later) == hello
    items = msgpack.unpackb(messages.encode(open_))
    assert len(items) == 4
    assert messages.decode(messages.Open.kind, msgpack.packb([*items, None, None, b"later", 7])) == open_
    needing = messages.decode(messages.Open.kind, msgpack.packb([*items, "undo", None, b"later"]))
    assert isinstance(needing, messages.Open)
    assert needing.needs == "undo"
    with pytest.raises(ProtocolError, match="expected 6 fields, found 3"):
        messages.decode(messages.Open.kind, msgpack.packb(items[:3]))
    done = messages.Done(1, 2, 3, 4, 5, 6, ExitCode.PARTIAL, 7)
    items = msgpack.unpackb(messages.encode(done))
    assert messages.decode(messages.Done.kind, msgpack.packb([*items, None, b"later"])) == done
    assert messages.decode(messages.Done.kind, msgpack.packb(items[:-1])) == replace(done, created=None)
    with pytest.raises(ProtocolError, match="expected 8 fields, found 6"):
        messages.decode(messages.Done.kind, msgpack.packb(items[:-2]))


def test_all_added_options_fit_into_one_open() -> None:
    """Each takes two items."""
    assert 2 * len(ADDED_OPTIONS) <= ARRAY_ITEMS
