"""A stream cut or damaged anywhere: an error that says so, old or new files, and the next run finishes."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rdc.transport.memory
from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from rdc.transport.base import Transport
from tests.damaged_transport import DamagedTransport
from tests.old_or_new import check_old_or_new
from tests.syncing import Way, run_sync, shell
from tests.trees import File, Link, Tree, describe, litter, read_tree, tree, write_tree

RELAY = Path(__file__).with_name("relay_ssh.py")


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
OPTIONS = SyncOptions(delete=True, fsync=False)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    return write_tree(tmp_path / "source", WANTED), write_tree(tmp_path / "destination", HELD)


def check(destination: Path, *, killed: bool = False) -> Tree:
    return check_old_or_new(read_tree(destination), HELD, WANTED, killed=killed)


def finish(source: Path, destination: Path) -> None:
    assert run_sync(source, destination, OPTIONS).done.exit == ExitCode.OK
    assert describe(WANTED, read_tree(destination)) == []


def renew(destination: Path) -> None:
    shutil.rmtree(destination)
    write_tree(destination, HELD)


@contextmanager
def damaged(end: int, *, cut: int | None = None, flip: int | None = None) -> Iterator[None]:
    """Damage to what one end of syncs in this process receives: 0 is the destination, 1 the source."""
    pair = rdc.transport.memory.pair

    def make() -> tuple[Transport, ...]:
        ends = list(pair())
        ends[end] = DamagedTransport(ends[end], cut=cut, flip=flip)
        return tuple(ends)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rdc.transport.memory, "pair", make)
        yield


def attempt(places: tuple[Path, Path]) -> ExitCode:
    renew(places[1])
    try:
        return run_sync(*places, OPTIONS).done.exit
    except RdcError as error:
        assert "internal" not in str(error) and "\n" not in str(error)
        return error.code


@pytest.fixture(params=[0, 1], ids=["what the destination receives", "what the source receives"])
def end(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def stream_length(end: int, places: tuple[Path, Path]) -> int:
    report = run_sync(*places, OPTIONS).done
    return (report.bytes_received, report.bytes_sent)[end]


def test_a_stream_cut_anywhere(end: int, places: tuple[Path, Path]) -> None:
    total = stream_length(end, places)
    positions = sorted({*range(1, 60), *range(60, total, max(1, total // 120)), *range(total - 12, total)})
    for position in positions:
        with damaged(end, cut=position):
            code = attempt(places)
        found = check(places[1])
        # The last bytes may be missed by nobody: everything is in place then.
        assert code == ExitCode.STREAM or found == WANTED, (position, total)
        if position % 7 == 0:
            finish(*places)


def test_any_bit_changed(end: int, places: tuple[Path, Path]) -> None:
    """No transport in use lets this happen, and names or times may come out wrong; contents never do."""
    total = stream_length(end, places)
    contents = {node.content for held in (HELD, WANTED) for node in held.values() if isinstance(node, File)}
    rng = random.Random(5)
    early = [rng.randrange(8 * min(total, 3000)) for _ in range(120)]
    late = [rng.randrange(8 * total) for _ in range(60)]
    for position in early + late:
        with damaged(end, flip=position):
            code = attempt(places)
        found = read_tree(places[1])
        assert litter(found) == [], position
        for node in found.values():
            assert not isinstance(node, File) or node.content in contents, position
        # Anything but a mistake in the use of rdc itself, which is what an internal error ends with.
        assert code != ExitCode.USAGE, position


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("damage", ["cut", "junk"])
def test_a_far_side_that_dies(
    damage: str, direction: str, way: Way, places: tuple[Path, Path], tmp_path: Path
) -> None:
    """Through real processes: the far one is killed after so many bytes, or junk comes and then the end."""
    account = tmp_path / "account"
    run_sync(*places, OPTIONS, way=way, remote=shell(sys.executable, RELAY, "--account", account))
    total = json.loads(account.read_text())[direction]
    for position in sorted({1, 5, *(total * part // 6 for part in range(1, 6)), total - 2}):
        renew(places[1])
        relay = shell(sys.executable, RELAY, f"--{damage}-{direction}", str(position))
        try:
            run_sync(*places, OPTIONS, way=way, remote=relay)
        except RdcError as error:
            assert error.code in {ExitCode.STREAM, ExitCode.INCOMPATIBLE}, error
            check(places[1], killed=damage == "cut")
        else:
            # It had said that everything was in place, and missed no more than the good-bye.
            assert position == total - 2
            assert describe(WANTED, read_tree(places[1])) == []
        finish(*places)
