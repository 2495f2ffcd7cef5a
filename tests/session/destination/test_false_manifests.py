"""Peers that lie about manifests, or ask for what there is not: an error, and nothing worse."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.signer import FileSigner
from rdc.errors import ProtocolError, RdcError
from rdc.model.entries import Kind, ListedDirectories, PackedListing
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages import (
    Describe,
    FileRequest,
    Hello,
    ListingEnd,
    Manifest,
    Message,
    Open,
    Role,
    RootRequest,
    RowsRequest,
    TierAnswer,
    TierRequest,
)
from rdc.protocol.sequence import SequenceRules
from rdc.session.runtime.commands import Command, Receive, Send
from rdc.session.serve import answer, greeting
from rdc.session.source import tree_description as description_module
from rdc.session.source.tree_description import Description
from rdc.tree.manifest import Fold
from rdc.tree.manifest import Manifest as Columns
from rdc.tree.walk import Walk, WalkedDirectory
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.running.run_pair import run_pair
from tests.support.trees.manifest_runs import equal, many
from tests.support.trees.manifests import entry, listing
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=["source dials", "destination dials"])


def files(*names: bytes, kind: Kind = Kind.FILE) -> PackedListing:
    return listing([entry(name, kind, target=b"t") for name in names]).packed()


def a_second_listing(manifest: Columns) -> None:
    manifest.add(b"directory-0003", files(b"more"))


def below_a_file(manifest: Columns) -> None:
    manifest.add(b"directory-0003/file-00150", files(b"more"))


def below_nothing(manifest: Columns) -> None:
    manifest.add(b"nowhere", files(b"more"))


def below_a_link(manifest: Columns) -> None:
    manifest.add(b"zz", files(b"link", kind=Kind.SYMLINK))
    manifest.add(b"zz/link", files(b"more"))


def unsorted_at_a_seam(manifest: Columns) -> None:
    """The last name of one node after the first of the next, where no message sees both."""
    before = len(manifest)
    for total in range(100, 400):
        names = [b"%05d" % i for i in range(total)]
        # Whether a node ends between the halves has to be tried: the names decide.
        tried = Columns()
        for path, part in manifest.parts(0, before):
            tried.add(path, part)
        _swapped(tried, names)
        if before + total - 50 in Fold(tried, Preserved(False)).tiers[0].ends:
            _swapped(manifest, names)
            return
    raise AssertionError("no seam")


def _swapped(manifest: Columns, names: list[bytes]) -> None:
    manifest.extend(b"zz", files(*names[50:]))
    manifest.extend(b"zz", files(*names[:50]))


def above_the_root(manifest: Columns) -> None:
    manifest.add(b"../outside", files(b"more"))


def an_absolute_path(manifest: Columns) -> None:
    manifest.add(b"/etc", files(b"more"))


def a_name_with_a_slash(manifest: Columns) -> None:
    manifest.add(b"zz", files(b"a"))
    at = manifest.text.rindex(b"a\0")
    manifest.text[at : at + 1] = b"x/../../a"


def a_dot_dot(manifest: Columns) -> None:
    manifest.add(b"zz", files(b"a"))
    at = manifest.text.rindex(b"a\0")
    manifest.text[at : at + 1] = b".."


def a_large_mode(manifest: Columns) -> None:
    manifest.modes[:2] = array("H", [0o10000]).tobytes()


def a_directory_with_a_size(manifest: Columns) -> None:
    row = manifest.kinds.index(Kind.DIRECTORY)
    manifest.sizes[8 * row : 8 * row + 8] = array("Q", [7]).tobytes()


LIES = [
    a_second_listing,
    below_a_file,
    below_nothing,
    below_a_link,
    above_the_root,
    an_absolute_path,
    a_name_with_a_slash,
    a_dot_dot,
    a_large_mode,
]


def with_zz(top: Path) -> Path:
    (top / "zz").mkdir()
    os.utime(top, ns=(5, 5))
    os.utime(top / "zz", ns=(5, 5))
    return top


class LyingWalk:
    """A walk whose manifest gets `lie` in the end."""

    def __init__(self, walk: Walk, manifest: Columns, lie: Callable[[Columns], None]) -> None:
        self._walk, self._manifest, self._lie = walk, manifest, lie

    def __iter__(self) -> Iterator[WalkedDirectory]:
        yield from self._walk
        self._lie(self._manifest)

    def many(self, *, single: bool = False) -> Iterator[ListedDirectories]:
        yield from self._walk.many(single=single)
        self._lie(self._manifest)


def lying(monkeypatch: pytest.MonkeyPatch, lie: Callable[[Columns], None]) -> None:
    """Sources add `lie` to what they walked, and mean it: digests and answers are of the lie."""
    walk = Description._walk

    def walked(self: Description, *, again: bool = False) -> LyingWalk:
        return LyingWalk(walk(self, again=again), self.manifest, lie)

    monkeypatch.setattr(Description, "_walk", walked)


@DIALLERS
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_manifest_that_is_no_tree_is_refused(
    lie: Callable[[Columns], None], dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = with_zz(write_tree(tmp_path / "source", many(400)))
    destination = with_zz(write_tree(tmp_path / "destination", many(400)))
    lying(monkeypatch, lie)
    with pytest.raises(ProtocolError):
        sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert sorted(os.listdir(tmp_path)) == ["destination", "source"]
    assert read_tree(destination).keys() <= read_tree(source).keys() | {b"zz/link"}


def test_names_out_of_order_between_messages_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = with_zz(write_tree(tmp_path / "source", many(400)))
    destination = with_zz(write_tree(tmp_path / "destination", many(400)))
    lying(monkeypatch, unsorted_at_a_seam)
    with pytest.raises(ProtocolError, match="strictly increasing"):
        sync_in_turns(source, destination, SyncOptions(owner=False))
    assert os.listdir(destination / "zz") == []


def test_a_directory_with_a_size_costs_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could be a collision of two nodes' names: it is not taken for a lie, and not believed either."""
    source = write_tree(tmp_path / "source", many(2_000))
    destination = write_tree(tmp_path / "destination", many(2_000))
    lying(monkeypatch, a_directory_with_a_size)
    # Not in what it says of the whole: its own connection would not send that.
    honest = sum(len(file.content) for file in many(2_000).values() if isinstance(file, File))
    monkeypatch.setattr(Description, "total_bytes", honest)
    run = sync_in_turns(source, destination)
    assert (run.done.changed, {"TopTier", "ListingEnd"} <= kinds(run)) == (0, True)
    equal(source, destination)


def offering(monkeypatch: pytest.MonkeyPatch, change: Callable[[Manifest], Manifest]) -> None:
    offer = Description.offer

    def offered(
        self: Description, kept: Preserved, round_: int, **options: Any
    ) -> Generator[Command, Received | None, None]:
        for command in offer(self, kept, round_, **options):
            if isinstance(command, Send) and isinstance(command.message, Manifest):
                yield Send(change(command.message), command.round)
            else:
                yield command

    monkeypatch.setattr(Description, "offer", offered)


def changed_manifest(message: Manifest, **fields: int | bytes) -> Manifest:
    values = {
        name: getattr(message, name) for name in ("root", "entries", "files", "bytes", "read_errors", "kept")
    }
    return Manifest(**(values | fields))


def test_a_wrong_digest_costs_the_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tree(tmp_path / "source", many(400) | tree({"new": b"new"}))
    destination = write_tree(tmp_path / "destination", many(400))
    offering(monkeypatch, lambda m: changed_manifest(m, root=b"r" * 32))
    run = sync_in_turns(source, destination)
    assert {"TopTier", "ListingEnd"} <= kinds(run)
    equal(source, destination)


@pytest.mark.parametrize("entries", [201, 399, 402, 5_000, 10**6, (1 << 32) - 1])
def test_a_wrong_number_of_entries_is_refused_or_costs_the_listing(
    entries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_tree(tmp_path / "source", many(400) | tree({"new": b"new"}))
    destination = write_tree(tmp_path / "destination", many(400))
    offering(monkeypatch, lambda m: changed_manifest(m, entries=entries))
    try:
        sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False))
    except ProtocolError:
        assert describe(many(400), read_tree(destination)) == []
    else:
        equal(source, destination)


def test_any_lie_about_columns_ends_in_an_error_or_in_what_it_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random bytes in a source's columns: never another exception, never a path outside."""
    rng = random.Random(7)
    for number in range(60):
        top = tmp_path / str(number)
        top.mkdir()
        source = write_tree(top / "source", many(230))
        destination = write_tree(top / "destination", many(230))
        column = rng.choice(("text", "kinds", "modes", "sizes", "mtimes", "targets", "uids"))

        def spoil(manifest: Columns, column: str = column) -> None:
            data = getattr(manifest, column)
            for _ in range(rng.randint(1, 3)):
                if data:
                    data[rng.randrange(len(data))] = rng.randrange(256)

        with monkeypatch.context() as patch:
            lying(patch, spoil)
            with suppress(RdcError):
                sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False, owner=False))
        assert sorted(os.listdir(top)) == ["destination", "source"]


# Destinations


class Unordered(SequenceRules):
    """Lets this side say anything at any time."""

    def say(self, message: Message) -> None:
        if isinstance(message, Hello):
            super().say(message)
        elif isinstance(message, Open) and self.role is None:
            super().say(message)
            self._pending = _Anything()  # type: ignore[assignment] # it answers whatever it is asked
        elif isinstance(message, Describe) and self._totals._asked is None:
            super().say(message)


class Unchecked(Connection):
    """Sends whatever it is given, whether the protocol allows it now or not."""

    def __init__(self, dialler: bool, hello: Hello, compress: bool = True) -> None:
        super().__init__(dialler, hello, compress)
        self._rules = Unordered(dialler)
        self._rules.say(hello)


class _Anything:
    """A ledger that has asked for everything."""

    def answer(self, answer: object) -> None: ...

    def __len__(self) -> int:
        return 0


BY_DIGEST, WHOLE = Describe(False, Preserved(True)), Describe(True, Preserved(True))


def asking(path: Path, *messages: Message) -> Generator[Command, Received | None, list[Message]]:
    """Opens `path` as a source, says `messages` and waits for what comes of it."""
    told: list[Message] = []
    yield Send(Open(Role.SOURCE, os.fsencode(path) + b"/", b"k" * 16, SyncOptions()), 0)
    for message in messages:
        yield Send(message, 0)
    while True:
        received = yield Receive()
        assert received is not None
        told.append(received.message)
        if isinstance(received.message, TierAnswer | ListingEnd):
            return told


HOSTILE: dict[str, list[Message]] = {
    "a node past the tier": [BY_DIGEST, TierRequest(0, (10**6,), 7)],
    "children in a tier past the top": [BY_DIGEST, TierRequest(24, (0,), 7)],
    "children of the top's parents": [BY_DIGEST, TierRequest(1, (0,), 7)],
    "rows of a node past the tier": [BY_DIGEST, RowsRequest(0, (0, 10**6), 7)],
    "rows of a tier past the top": [BY_DIGEST, RowsRequest(24, (0,), 7)],
    "a look without a manifest": [WHOLE, TierRequest(0, (), 7)],
    "a look before anything": [TierRequest(0, (), 7)],
    "rows without a manifest": [WHOLE, RowsRequest(0, (0,), 7)],
    "two manifests": [BY_DIGEST, BY_DIGEST],
    "two listings": [WHOLE, WHOLE],
    "three descriptions": [BY_DIGEST, WHOLE, WHOLE],
    "a look after the listing": [BY_DIGEST, WHOLE, TierRequest(0, (), 7)],
    "a directory as a file": [BY_DIGEST, FileRequest((0,))],
    "a file past the manifest": [BY_DIGEST, FileRequest((10**6,))],
    "the root of a directory": [BY_DIGEST, RootRequest((0,))],
    "a second opening": [BY_DIGEST, Open(Role.SOURCE, b"/", b"k" * 16, SyncOptions())],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_destination_that_asks_for_what_there_is_not_is_refused(case: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", many(400))
    signer = FileSigner()
    near, far = Unchecked(True, greeting(signer.params)), Connection(False, greeting(signer.params))
    with pytest.raises(ProtocolError, match=r"the remote side|asked for|a source was sent"):
        run_pair(asking(source, *HOSTILE[case]), near, answer(signer), far)


def test_an_empty_manifest_has_no_tiers(tmp_path: Path) -> None:
    signer = FileSigner()
    near, far = Unchecked(True, greeting(signer.params)), Connection(False, greeting(signer.params))
    with pytest.raises(ProtocolError, match="tier 0 of 0"):
        run_pair(asking(tmp_path, BY_DIGEST, TierRequest(0, (), 7)), near, answer(signer), far)


def test_a_tier_that_fits_no_message_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tree(tmp_path / "source", many(400))
    monkeypatch.setattr(description_module, "TIER_NODES_WHOLE", 20)
    signer = FileSigner()
    for level, fails in ((0, True), (1, False)):
        near, far = Unchecked(True, greeting(signer.params)), Connection(False, greeting(signer.params))
        talk = asking(source, BY_DIGEST, TierRequest(level, (), 7))
        if fails:
            with pytest.raises(ProtocolError, match="at once"):
                run_pair(talk, near, answer(signer), far)
        else:
            with pytest.raises(RdcError):  # this peer leaves without a word
                run_pair(talk, near, answer(signer), far)
