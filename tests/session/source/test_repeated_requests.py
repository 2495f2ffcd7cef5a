"""A destination that asks for the same again and again: how much of it a source answers."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pytest

from rdc.catalog.signer import FileSigner
from rdc.errors import ProtocolError
from rdc.lean.records import field_names
from rdc.limits import ASKED_FILE_BYTES, COMPARED_TIMES, ROW_REQUESTS, SENT_TIMES
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol import messages
from rdc.protocol.connection import Connection
from rdc.protocol.messages.field_types import Claims
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.serve import answer, greeting
from rdc.session.source import tree_description as demand_module
from rdc.session.source import tree_description as description_module
from rdc.session.source.tree_description import Demand
from rdc.tree.manifest import Manifest
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.run_pair import run_pair
from tests.support.trees.manifests import build, entry
from tests.support.trees.trees import tree, write_tree
from tests.support.wire.tampered_session import SCENES, Scene

LARGE = 300_000
SMALL = 20
ANNOUNCED = LARGE + 1_000 * SMALL + (SMALL + 1) * ASKED_FILE_BYTES
FREELY = 1 << 20
EVERY = tuple(range(SMALL + 1))
BUNDLED = tuple(range(1, SMALL + 1))
BUNDLE = SMALL + 1
"""Ordinals: the large file, the small ones, the first bundle."""

WHOLE = array("Q", (0, LARGE))
CELLS = Claims(tuple(range(LARGE // 8192)), bytes(2 * (LARGE // 8192)))
SCATTERED = tuple((offset, 16) for offset in range(0, LARGE - 16, 400))

REQUESTS: dict[str, list[messages.Message]] = {
    "whole files": [messages.FileRequest(EVERY)],
    "a whole file": [messages.FileRequest((0,))],
    "a small file": [messages.FileRequest((7,))],
    "ranges": [messages.RangeRequest.of(0, WHOLE)],
    "packed ranges": [messages.RangeRequest.of(0, array("Q", (1_000, 100_000)), pack=True)],
    "a packed byte": [messages.RangeRequest.of(0, array("Q", (150_000, 1)), pack=True)],
    "claims": [messages.RangeRequest.of(0, array("Q"), claims=CELLS)],
    "claims about blanks": [messages.RangeRequest.of(0, array("Q"), claims=CELLS, blank=True)],
    "blocks": [messages.BlockRequest.of(0, array("Q", (0, LARGE)), 16, 8)],
    "blanked blocks": [messages.BlockRequest(0, (0,), (LARGE,), 64, 8, True)],
    "scattered blocks": [messages.BlockRequest.of(0, array("Q", chain.from_iterable(SCATTERED)), 16, 8)],
    "roots": [messages.RootRequest(EVERY)],
    "digests": [messages.DigestRequest(EVERY)],
    "traits": [messages.TraitsRequest(EVERY)],
    "trees": [messages.TreeRequest(EVERY, 32, 64)],
    "nodes": [messages.NodeRequest(0, 0, (0, 1), 32)],
    "bundles": [messages.BundleRequest(BUNDLE, BUNDLED, 256)],
    "a bundle's blocks": [
        messages.BundleRequest(BUNDLE, BUNDLED, 256),
        *[messages.BlockRequest.of(BUNDLE, array("Q", (0, 16)), 16, 8)] * 20,
    ],
    "a bundle's ranges": [
        messages.BundleRequest(BUNDLE, BUNDLED, 256),
        *[messages.RangeRequest.of(BUNDLE, array("Q", (0, 20_000)))] * 20,
    ],
    "everything": [
        messages.RootRequest(EVERY),
        messages.TreeRequest(EVERY, 8),
        messages.RangeRequest.of(0, WHOLE),
        messages.FileRequest((0,)),
    ],
}


def repeated(requests: Sequence[messages.Message]) -> Iterator[messages.Message]:
    """For ever; each bundle is another one."""
    bundle = BUNDLE
    while True:
        for request in requests:
            if isinstance(request, messages.BundleRequest):
                yield messages.BundleRequest(bundle, request.files, request.block)
                bundle += 1
            elif (
                isinstance(request, messages.BlockRequest | messages.RangeRequest) and request.file == BUNDLE
            ):
                kind = type(request)
                yield kind(bundle - 1, *[getattr(request, name) for name in field_names(kind)[1:]])
            else:
                yield request


class Greedy:
    """A destination that asks for the same until it is refused."""

    def __init__(self, place: Path) -> None:
        signer = FileSigner()
        self.near, self.far = (
            Connection(True, greeting(signer.params)),
            Connection(False, greeting(signer.params)),
        )
        self.place = os.fsencode(place) + b"/"
        self.signer = signer
        self.asked = 0

    def ask(self, requests: Iterator[messages.Message], whole: bool) -> Conversation[None]:
        yield Send(messages.Open(messages.Role.SOURCE, self.place, b"s" * 16, SyncOptions()), 0)
        yield Send(messages.Describe(whole, Preserved(False)), 0)
        last = messages.ListingEnd if whole else messages.TopTier
        while (received := (yield Receive())) is None or not isinstance(received.message, last):
            pass
        for request in requests:
            self.asked += 1
            yield Send(request, 2)
            while self.near.outstanding:
                yield Receive()

    def run(self, requests: Iterator[messages.Message], *, whole: bool = True) -> None:
        run_pair(self.ask(requests, whole), self.near, answer(self.signer), self.far)


@pytest.fixture
def greedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Greedy:
    monkeypatch.setattr(demand_module, "ASKED_FREELY_BYTES", FREELY)
    noise = random.Random(1)
    files = {f"s{row:02}": noise.randbytes(1_000) for row in range(SMALL)}
    return Greedy(write_tree(tmp_path / "source", tree({"large": noise.randbytes(LARGE), **files})))


@pytest.mark.parametrize("asked", REQUESTS)
def test_a_source_ends_a_session_that_asks_too_often(
    asked: str, greedy: Greedy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked for, again and again: what is sent, and what is read for it, has an end."""
    demands: list[Demand] = []
    take = Demand.take

    def noted(self: Demand, message: messages.Message) -> None:
        demands[:] = [self]
        take(self, message)

    monkeypatch.setattr(Demand, "take", noted)
    with pytest.raises(ProtocolError, match=r"asked this one to (send|compare) [0-9]+ bytes: more than"):
        greedy.run(repeated(REQUESTS[asked]))
    (demand,) = demands
    most = max(demand.sent / SENT_TIMES, demand.compared / COMPARED_TIMES)
    assert ANNOUNCED < most <= ANNOUNCED + FREELY + 4 * ANNOUNCED
    assert greedy.far.bytes_sent <= COMPARED_TIMES * ANNOUNCED + FREELY
    if asked in {"whole files", "a whole file", "a small file", "ranges"}:
        assert greedy.far.bytes_sent <= SENT_TIMES * ANNOUNCED + FREELY + 64 * greedy.asked


def test_a_file_that_grew_counts_as_long_as_it_is(
    greedy: Greedy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, however often it is announced anew: it does not pay for being asked for again."""
    grown = 2 << 20
    listed = tmp_path / "source" / "s00"

    def requests() -> Iterator[messages.Message]:
        listed.write_bytes(random.Random(2).randbytes(grown))
        while True:
            yield messages.FileRequest((1,))

    with pytest.raises(ProtocolError, match=r"asked this one to send"):
        greedy.run(requests())
    assert greedy.asked <= (SENT_TIMES * (ANNOUNCED + grown) + FREELY) // grown + 1
    assert greedy.asked >= SENT_TIMES


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_sync_asks_for_each_byte_a_few_times(
    scene: Callable[[], Scene], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eighth of what is allowed, of trees that have files of all kinds."""
    demands: list[Demand] = []
    make = Demand.__init__

    def noted(self: Demand, manifest: Manifest) -> None:
        demands.append(self)
        make(self, manifest)

    monkeypatch.setattr(Demand, "__init__", noted)
    trees = scene()
    source = write_tree(tmp_path / "source", trees.wanted)
    sync_in_turns(source, write_tree(tmp_path / "destination", trees.held), trees.options)
    files = [path for path in source.rglob("*") if path.is_file() and not path.is_symlink()]
    announced = sum(path.stat().st_size + ASKED_FILE_BYTES for path in files)
    assert demands
    assert 0 < sum(demand.sent for demand in demands) <= SENT_TIMES / 8 * announced
    assert 0 < sum(demand.compared for demand in demands) <= COMPARED_TIMES / 8 * announced


MANIFEST: dict[str, list[messages.Message]] = {
    "rows": [messages.RowsRequest(0, (0, 1), 7)],
    "rows of more": [messages.RowsRequest(1, (0, 1), 7)],
    "a tier": [messages.TierRequest(0, (), 7)],
    "nodes": [messages.TierRequest(0, (0, 1), 7)],
}


@pytest.mark.parametrize("asked", MANIFEST)
def test_a_source_ends_a_session_that_asks_for_its_manifest_too_often(
    asked: str, greedy: Greedy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(description_module, "ROWS_FREELY", 1_000)
    for number in range(500):
        (tmp_path / "source" / f"x{number}").touch()
    entries = 500 + SMALL + 1
    with pytest.raises(
        ProtocolError, match=rf"rows and nodes of a manifest of {entries}: more than 16 times"
    ):
        greedy.run(repeated(MANIFEST[asked]), whole=False)
    assert greedy.asked <= ROW_REQUESTS * entries + 1_000
    assert greedy.far.bytes_sent <= 100 * (ROW_REQUESTS * entries + 1_000)


def test_more_may_be_asked_for_as_more_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A destination asks while the listing goes on."""
    monkeypatch.setattr(demand_module, "ASKED_FREELY_BYTES", 0)
    names = [b"f%03d" % row for row in range(300)]
    whole, manifest = build({name: entry(name, size=10_000) for name in names}), Manifest()
    demand = Demand(manifest)
    for start in range(0, 300, 100):
        manifest.extend(b"", whole.packed_slice(0, start, start + 100))
        for _ in range(SENT_TIMES):
            demand.take(messages.FileRequest(tuple(range(start, start + 100))))
    with pytest.raises(ProtocolError, match="to send"):
        demand.take(messages.FileRequest((0,)))
    assert demand.sent == SENT_TIMES * 300 * (10_000 + ASKED_FILE_BYTES) + 10_000 + ASKED_FILE_BYTES
