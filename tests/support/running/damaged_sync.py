"""Syncs whose stream is cut or changed on its way to one end, and what must be true afterwards."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from rdc.transport.base import Transport
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.old_or_new import check_old_or_new, worth_keeping
from tests.support.trees.trees import File, Link, Tree, describe, litter, read_tree, tree, write_tree
from tests.support.wire.damaged_transport import DamagedTransport
from tests.support.wire.memory_stream import stream_sync

__all__ = ["HELD", "OPTIONS", "WANTED", "Attempt", "check_after_cut", "check_after_flip", "finish", "renew"]


def blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


WANTED = tree(
    {
        "edited": blob(1, 50_000) + b"edit" + blob(2, 150_000),
        "grown": blob(3, 90_000) + bytes(60_000),
        "new": blob(4, 40_000),
        "d/empty": b"",
        "d/small": b"a new file",
        "d/link": Link(b"small"),
        "kind": b"a file now",
        "z": File(b"other mode", 0o755),
    }
)
HELD = tree(
    {
        "edited": File(blob(1, 50_000) + blob(2, 150_000), 0o600, 1),
        "grown": File(blob(3, 90_000), 0o600, 1),
        "d/small": File(b"an old file", 0o600, 1),
        "d/link": Link(b"elsewhere", 1),
        "kind/was": b"a directory",
        "extra": b"to go",
        "z": File(b"other mode", 0o644),
    }
)
OPTIONS = SyncOptions(delete=True, fsync=False, fewest_bytes=True)
WHOLE = SyncOptions(delete=True, fsync=False, line=1 << 30)
"""Changed files come by delta, or whole."""


def check_after_cut(destination: Path, *, killed: bool = False) -> Tree:
    """Every path is old or new; what is there."""
    return check_old_or_new(read_tree(destination), HELD, WANTED, killed=killed)


def finish(source: Path, destination: Path) -> None:
    assert run_sync(source, destination, OPTIONS).done.exit == ExitCode.OK
    assert describe(WANTED, read_tree(destination)) == []


def renew(destination: Path) -> None:
    shutil.rmtree(destination)
    write_tree(destination, HELD)


@dataclass
class Attempt:
    """Syncs from the same start, with one end's input damaged."""

    source: Path
    destination: Path
    way: Way
    end: str

    def total(self) -> int:
        """Bytes that arrive there when nothing is wrong."""
        renew(self.destination)
        report = stream_sync(self.source, self.destination, OPTIONS, self.way)
        return report.bytes_received if self.end == "near" else report.bytes_sent

    def run(self, *, cut: int | None = None, flip: int | None = None) -> ExitCode:
        """One sync; the exit code of its near side. What is left is checked."""
        renew(self.destination)
        ends: list[DamagedTransport] = []

        def damage(inner: Transport) -> Transport:
            ends.append(DamagedTransport(inner, cut=cut, flip=flip))
            return ends[0]

        name = "near_damage" if self.end == "near" else "far_damage"
        try:
            # A flipped bit may be one of the limit on bytes a second, which the remote side then keeps to.
            with patch("rdc.session.runtime.driver.TokenBucket", lambda rate: None):
                options = WHOLE if (cut or flip or 0) % 3 == 0 else OPTIONS
                code = stream_sync(self.source, self.destination, options, self.way, **{name: damage}).exit
        except RdcError as error:
            assert "internal" not in str(error) and "\n" not in str(error)
            code = error.code
        # What a flipped bit did may have ended the run before its turn came; and by the session's key, which
        # decides about blocks that only seem to be there, one run takes some bytes fewer than another.
        assert ends[0].damaged or flip is not None or code == ExitCode.OK
        if flip is None:
            check_after_cut(self.destination)
        else:
            check_after_flip(self.destination)
        return code


def check_after_flip(destination: Path) -> None:
    """No transport in use lets it happen, and names or times may come out wrong; contents never do."""
    contents = {node.content for held in (HELD, WANTED) for node in held.values() if isinstance(node, File)}
    found = read_tree(destination)
    for path in litter(found):
        assert worth_keeping(found.pop(path)), path
    assert all(node.content in contents for node in found.values() if isinstance(node, File))
