"""Checks every state that a power cut may leave of a recorded command, and runs through the states."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rdc.errors import RdcError
from tests.support.power.power_cut import Cut, History, State
from tests.support.power.power_log import Ordering, Snapshot
from tests.support.power.recorded_writes import Call
from tests.support.trees.trees import Directory, File, Node, Tree, litter

__all__ = ["Outcome", "Scene", "check_kept", "check_landed", "check_versions", "run_states", "sample"]


@dataclass(slots=True)
class Scene:
    """One recorded command, and what is to be held against the states that it may leave."""

    name: str
    before: Snapshot
    after: Tree
    calls: list[Call]
    check: Callable[[State], None]
    """Raises AssertionError for a state that may not be."""
    ended: Callable[[State], None]
    """The same for what the disk holds once the command has ended well."""
    converges: Callable[[Path, State], None]
    """Runs the command again over a state written to an empty place."""
    untold: frozenset[bytes] = frozenset()
    """Paths whose stores the recorder cannot see."""


@dataclass(slots=True)
class Outcome:
    """The counts of one scene's states."""

    prefixes: int = 0
    states: int = 0
    converged: int = 0
    faults: list[str] = field(default_factory=list)


def run_states(
    scene: Scene,
    history: History,
    ordering: Ordering,
    cuts: Iterable[Cut],
    place: Path,
    *,
    converge_every: int = 0,
) -> Outcome:
    """Check states, and run the command again over one in `converge_every` of them."""
    outcome = Outcome()
    seen = set()
    for cut in cuts:
        state = history.state(cut)
        outcome.states += 1
        seen.add(cut.prefix)
        try:
            scene.check(state)
            if cut.prefix == len(history):
                scene.ended(state)
            if converge_every and outcome.states % converge_every == 0:
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                scene.converges(place, state)
                outcome.converged += 1
        except (AssertionError, RdcError) as error:
            outcome.faults.append(f"{scene.name}, {ordering.name}, {cut}: {str(error)[:400]}"[:800])
    outcome.prefixes = len(seen)
    shutil.rmtree(place, ignore_errors=True)
    return outcome


def sample(history: History, ordering: Ordering, seed: int, number: int) -> list[Cut]:
    """Return `number` of the cuts, drawn by `seed`: of each prefix drawn those that lose nothing and
    everything, and some others. The whole recording is one of the prefixes."""
    rng = random.Random(seed)
    cuts: list[Cut] = []
    prefix = len(history)
    while len(cuts) < number:
        found = list(history.cuts_at(prefix, ordering, rng, subsets=4))
        cuts += found[:3] + rng.sample(found[3:], min(3, len(found[3:])))
        prefix = rng.randrange(len(history))
    return cuts[:number]


# What must hold


def check_versions(found: Tree, versions: Sequence[Tree]) -> None:
    """Every path is as in one of the versions. Of directories only their being there counts; mode and mtime
    of a file whose content stays are set one after the other."""
    temporaries = set(litter(found))
    for path in {path for version in versions for path in version} | (found.keys() - temporaries):
        node = found.get(path)
        may = [version.get(path) for version in versions]
        assert node in may or _is_between(node, may), (path, node, may)


def _is_between(node: Node | None, may: Sequence[Node | None]) -> bool:
    if isinstance(node, Directory):
        return any(isinstance(other, Directory) for other in may)
    same = [other for other in may if isinstance(other, File) and isinstance(node, File)]
    same = [other for other in same if isinstance(node, File) and other.content == node.content]
    return (
        isinstance(node, File)
        and node.mode in {other.mode for other in same}
        and node.mtime_ns in {other.mtime_ns for other in same}
    )


def check_kept(found: Tree, before: Tree, after: Tree) -> None:
    """Content that both versions have is at some path, wherever it was moved."""
    both = _contents(before) & _contents(after)
    missing = both - _contents({path: node for path, node in found.items() if path not in set(litter(found))})
    assert not missing, [content[:40] for content in missing]


def _contents(found: Tree) -> set[bytes]:
    return {node.content for node in found.values() if isinstance(node, File)}


def check_landed(found: Tree, wanted: Tree) -> None:
    """Every regular file that the command told of is there."""
    for path, node in wanted.items():
        if isinstance(node, File):
            here = found.get(path)
            assert isinstance(here, File), (path, "told of, and lost")
            assert here.content == node.content, (path, "told of, and lost")
