"""Nothing is deleted in a run in which a name that the destination lacked did not arrive."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from rdc.errors import RdcError
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from rdc.session.sync import sync
from tests.support.running.failing_calls import Fault, Made, with_fault
from tests.support.share import examples
from tests.support.trees.tree_strategies import edited, plain_trees
from tests.support.trees.trees import Directory, File, Tree, read_tree, write_tree

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


def is_there(path: bytes, wanted: Tree, found: Tree) -> bool:
    return path in found and type(found[path]) is type(wanted[path])


def lost(wanted: Tree, held: Tree, found: Tree) -> list[bytes]:
    """What was at the destination, is not at the source under that name, and is there under no name now."""
    contents = {node.content for node in found.values() if isinstance(node, File)}
    return [
        path
        for path, node in held.items()
        if path not in wanted
        and not (path in found and type(found[path]) is type(node))
        and not (isinstance(node, File) and node.content in contents)
    ]


def replaced(path: bytes, held: Tree, found: Tree) -> bool:
    """Whether a file or link is above `path` now where a directory was."""
    parts = path.split(b"/")
    above = (b"/".join(parts[:count]) for count in range(1, len(parts)))
    return any(not isinstance(found.get(one), Directory) for one in above if one in held and one in found)


def check(wanted: Tree, held: Tree, found: Tree) -> None:
    absent = [path for path in wanted if not is_there(path, wanted, found)]
    gone = [path for path in lost(wanted, held, found) if not replaced(path, held, found)]
    assert not (absent and gone), f"{absent} did not arrive, and {gone} are gone"
    for path, node in found.items():
        if isinstance(node, File) and b".rdc-" not in path:
            versions = [side[path] for side in (wanted, held) if path in side]
            assert any(isinstance(v, File) and v.content == node.content for v in versions), path


class Scene:
    """A source and a destination, to be synced over and over."""

    def __init__(self, top: Path, wanted: Tree, held: Tree) -> None:
        self.wanted, self.held = wanted, held
        self.source = write_tree(top / "source", wanted)
        self.destination = top / "destination"
        write_tree(self.destination, held)

    def reset(self) -> None:
        shutil.rmtree(self.destination)
        write_tree(self.destination, self.held)

    def sync(self, options: SyncOptions) -> list[str]:
        """One run. What it complained of, and the error that ended it."""
        events: list[Event] = []
        try:
            sync(f"{self.source}/", str(self.destination), options, reporter=events.append, catalog=None)
        except RdcError as error:
            events.append(Problem(error.code, b"", f"ended: {error}"))
        return [event.message for event in events if isinstance(event, Problem) and event.code]

    def sync_with(self, options: SyncOptions, fault: Fault | None = None) -> Made:
        """One run in a child, over what was there in the beginning."""
        self.reset()
        return with_fault(lambda: self.sync(options), fault)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_whatever_call_fails(data: st.DataObject) -> None:
    held = data.draw(plain_trees(), label="held")
    wanted = data.draw(edited(held), label="wanted")
    options = data.draw(
        st.builds(
            SyncOptions,
            delete=st.just(True),
            hard_links=st.booleans(),
            delay_updates=st.booleans(),
            fsync=st.booleans(),
            checksum=st.booleans(),
            force_empty=st.just(True),
        ),
        label="options",
    )
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        scene = Scene(Path(top), wanted, held)
        scene.sync(options)  # imports what a run needs
        clean = scene.sync_with(options)
        assert clean.value == []
        share = data.draw(st.floats(0, 1, exclude_max=True), label="at")
        fault = Fault(
            int(share * len(clean.calls)),
            data.draw(st.sampled_from((1, 2, 5)), label="times"),
            data.draw(st.integers(0, 2), label="choice"),
        )
        made = scene.sync_with(options, fault)
        note(f"{made.failed}: {made.value}")
        check(wanted, held, read_tree(scene.destination))
