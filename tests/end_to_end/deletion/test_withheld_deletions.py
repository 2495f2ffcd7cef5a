"""Nothing is deleted in a run in which a name that the destination lacked did not arrive."""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import rdc
from rdc.errors import RdcError
from rdc.files.base.paths import UNDO_NAME
from rdc.library.trees import sync
from rdc.model.options import Backup, KeepUndo
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from tests.support.running.failing_calls import Fault, Made, with_fault
from tests.support.share import commit_number, examples
from tests.support.trees.tree_strategies import edited, plain_trees
from tests.support.trees.trees import Directory, File, Link, Tree, read_tree, tree, write_tree

BIG = Random(1).randbytes(120_000)

LACKING = (("symlinkat", errno.EIO), ("symlinkat", errno.EPERM))
"""What a file system without symlinks answers. Nothing tells it from a disk that fails often enough."""

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


def check(wanted: Tree, held: Tree, found: Tree, made: Made) -> None:
    absent = [path for path in wanted if not is_there(path, wanted, found)]
    if len(made.failed) > 1 and any("the file system has none" in message for message in made.value):
        # Refused again and again with an error that file systems without symlinks have.
        assert all(failed in LACKING for failed in made.failed), made.failed
        absent = [path for path in absent if not isinstance(wanted[path], Link)]
    gone = lost(wanted, held, found)
    blocked = {
        path
        for path in wanted
        if path in held and isinstance(held[path], Directory) and not isinstance(wanted[path], Directory)
    }
    if blocked.issuperset(absent):
        # All else is here, so directories in the way were being emptied.
        gone = [path for path in gone if not any(path.startswith(one + b"/") for one in blocked)]
    assert not (absent and gone), f"{absent} did not arrive, and {gone} are gone"
    for path, node in found.items():
        if isinstance(node, File) and b".rdc-" not in path:
            versions = [side[path] for side in (wanted, held) if path in side]
            assert any(isinstance(v, File) and v.content == node.content for v in versions), path


for module in pkgutil.walk_packages(rdc.__path__, "rdc."):
    # The child imports nothing: a call that fails is one of the run itself.
    if module.name != "rdc.__main__":
        importlib.import_module(module.name)


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

    @property
    def found(self) -> Tree:
        """What is at the destination, but for what was kept of it."""
        found = read_tree(self.destination)
        return {path: node for path, node in found.items() if not path.startswith(UNDO_NAME)}

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


RICH = tree(
    {
        "moved": BIG,
        "moved and touched": File(BIG[:90_000], 0o644, 10**18),
        "small": b"a small one",
        "changed": BIG + b"old",
        "changed, and small": b"old",
        "in/the/way": b"soon above",
        "in/the/other": BIG[::-1],
        "in the way of a link/x": b"1",
        "file to directory": b"was a file",
        "link to file": Link(b"nowhere"),
        "extra/a": b"2",
        "extra/b/c": b"3",
        "extra/link": Link(b"x"),
        "kept/old": b"old content",
        "hard": b"has names",
    }
)
LATER = tree(
    {
        "new/moved": BIG,
        "new/moved and touched": File(BIG[:90_000], 0o600, 11 * 10**17),
        "new/deep/small": b"a small one",
        "changed": BIG + b"new!",
        "changed, and small": b"newer",
        "in": b"soon above",
        "in the way of a link": Link(b"target"),
        "file to directory/f": b"was a file",
        "link to file": b"now a file",
        **{f"many/{number}": b"%d" % number for number in range(12)},
        "many/other": BIG[::-1],
        "new link": Link(b"x"),
        "kept/new": b"old content",
        "hard": b"has names",
    }
)
LINKS = ("another name", "kept/name")
WAYS = [
    SyncOptions(delete=True, hard_links=True),
    SyncOptions(delete=True, hard_links=True, delay_updates=True),
    SyncOptions(delete=True, keep_undo=KeepUndo(days=1)),
    SyncOptions(delete=True, backup=Backup(b"", b"../backups")),
    SyncOptions(delete=True, whole_file=True),
]


@pytest.mark.parametrize("options", WAYS, ids=range(len(WAYS)))
def test_whatever_call_of_a_rich_run_fails(options: SyncOptions, tmp_path: Path) -> None:
    scene = Scene(tmp_path, LATER, RICH)
    if options.hard_links:
        for name in LINKS:
            os.link(scene.source / "hard", scene.source / name)
        scene.wanted = read_tree(scene.source)
    clean = scene.sync_with(options)
    assert clean.value == []
    assert scene.found.items() >= scene.wanted.items()
    # Another share of the calls for each commit.
    random = Random(commit_number())
    for at in random.sample(range(len(clean.calls)), examples(60)):
        made = scene.sync_with(options, Fault(at, random.choice((1, 2, 5)), random.randrange(3)))
        try:
            check(scene.wanted, RICH, scene.found, made)
        except AssertionError as error:
            raise AssertionError(f"{error}; {made.failed}: {made.value}") from error


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
        check(wanted, held, scene.found, made)
