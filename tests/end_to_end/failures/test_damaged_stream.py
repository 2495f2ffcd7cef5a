"""A stream cut or damaged anywhere: an error that says so, old or new files, and the next run finishes."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from tests.support.project_paths import RELAY_SSH
from tests.support.running.damaged_sync import HELD, OPTIONS, WANTED, Attempt, check_after_cut, finish, renew
from tests.support.running.syncing import Way, run_sync, shell
from tests.support.share import examples
from tests.support.trees.trees import describe, read_tree, write_tree


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    return write_tree(tmp_path / "source", WANTED), write_tree(tmp_path / "destination", HELD)


@pytest.fixture(params=[(way, end) for way in (Way.PUSH, Way.PULL) for end in ("near", "far")], ids=str)
def attempt(request: pytest.FixtureRequest, places: tuple[Path, Path]) -> Attempt:
    return Attempt(*places, *request.param)


def test_a_stream_cut_anywhere(attempt: Attempt) -> None:
    total = attempt.total()
    positions = sorted(
        {*range(1, 40), *range(40, total, max(1, total // examples(80))), *range(total - 12, total)}
    )
    for position in positions:
        code = attempt.run(cut=position)
        found = check_after_cut(attempt.destination)
        # The last bytes may be missed by nobody: everything is in place then.
        assert code in {ExitCode.STREAM, ExitCode.INCOMPATIBLE} or found == WANTED, (position, total, code)
        if position % 7 == 0:
            finish(attempt.source, attempt.destination)


def test_any_bit_changed(attempt: Attempt) -> None:
    total = attempt.total()
    rng = random.Random(5)
    early = [rng.randrange(8 * min(total, 3000)) for _ in range(examples(80))]
    late = [rng.randrange(8 * total) for _ in range(examples(40))]
    codes = Counter(attempt.run(flip=position) for position in early + late)
    # Anything but a mistake in the use of rdc itself, which is what an internal error ends with.
    assert ExitCode.USAGE not in codes
    # A damaged part of a file's content fails its digest and comes again, which is no error. All else is one.
    assert codes[ExitCode.OK] < codes.total() * 3 / 4, codes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("damage", ["cut", "junk"])
def test_a_far_side_that_dies(
    damage: str, direction: str, way: Way, places: tuple[Path, Path], tmp_path: Path
) -> None:
    """Through real processes: the far one is killed after so many bytes, or junk comes and then the end."""
    account = tmp_path / "account"
    run_sync(*places, OPTIONS, way=way, remote=shell(sys.executable, RELAY_SSH, "--account", account))
    total = json.loads(account.read_text())[direction]
    for position in sorted({1, 5, *(total * part // 6 for part in range(1, 6)), total - 2}):
        renew(places[1])
        relay = shell(sys.executable, RELAY_SSH, f"--{damage}-{direction}", str(position))
        try:
            run_sync(*places, OPTIONS, way=way, remote=relay)
        except RdcError as error:
            assert error.code in {ExitCode.STREAM, ExitCode.INCOMPATIBLE}, error
            check_after_cut(places[1], killed=damage == "cut")
        else:
            # It had said that everything was in place, and missed no more than the good-bye.
            assert position == total - 2
            assert describe(WANTED, read_tree(places[1])) == []
        finish(*places)
