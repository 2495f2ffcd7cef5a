"""A sample of `scripts/soak sync`: trees that live on, synced as rsync would, whatever the options."""

from __future__ import annotations

import pytest

from tests.support.running.compared_sync import ComparedSync
from tests.support.trees.unprivileged import place_of_nobody

pytestmark = pytest.mark.needs("rsync")


@pytest.mark.parametrize("seed", [1, 5, 220_098, 210_061, 210_259, 220_324])
def test_a_scene(seed: int) -> None:
    """With -H, -X, -A and -S among the seeds, a killed run, and another kind of entry under an old name."""
    with place_of_nobody() as place:  # some seeds sync without privileges
        scene = ComparedSync(place, seed)
        scene.run()
    assert scene.tally["syncs"]
