"""--append and --append-verify: files are only lengthened."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rsync
from tests.support.running.forced_command import forced
from tests.support.running.syncing import Way, command, run_sync
from tests.support.share import examples
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

LONG = random.Random(3).randbytes(400_000)
WANTED = tree(
    {
        "grown": LONG,
        "grown a little": b"one line\nanother line\n",
        "as long": b"new",
        "shorter": b"short",
        "new": b"new",
        "mode": File(b"the same", 0o755),
        "mode, and shorter": File(b"short", 0o755),
    }
)
HELD = tree(
    {
        "grown": File(LONG[:300_001], 0o644, 1),
        "grown a little": File(b"one line\n", 0o600, 1),
        "as long": File(b"old", 0o600, 1),
        "shorter": File(b"was longer", 0o644, 1),
        "mode": File(b"the same", 0o644),
        "mode, and shorter": File(b"was longer", 0o644, 1),
    }
)
LEFT = (b"as long", b"shorter", b"mode, and shorter")
EXPECTED = {**WANTED, **{path: HELD[path] for path in LEFT}}


@pytest.mark.parametrize("way", Way)
def test_only_what_is_shorter_changes(way: Way, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    inode = (top / "grown").stat().st_ino
    options = SyncOptions(append=True, fsync=False)
    run = run_sync(source, top, options, way=way)
    assert run.problems == []
    assert describe(EXPECTED, read_tree(top)) == []
    assert (top / "grown").stat().st_ino == inode
    assert run.done.literal_bytes < 140_000
    again = run_sync(source, top, options, way=way)
    assert (again.done.changed, again.problems) == (0, [])
    whole = run_sync(source, top, SyncOptions(fsync=False), way=way)  # it has not learned that all is in sync
    assert whole.problems == []
    assert describe(WANTED, read_tree(top)) == []


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("option", ["--append", "--append-verify"])
def test_beside_rsync(option: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    ours, theirs = (write_tree(tmp_path / name, HELD) for name in ("rdc", "rsync"))
    assert command("sync", option, f"{source}/", f"{ours}/").code == 0
    rsync("-a", option, f"{source}/", f"{theirs}/")
    assert describe(read_tree(theirs), read_tree(ours)) == []


@settings(max_examples=examples(40), deadline=None)
@given(st.binary(max_size=3000), st.binary(max_size=3000), st.booleans())
def test_a_shorter_file_becomes_as_at_the_source_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes, begins: bool
) -> None:
    top = tmp_path_factory.mktemp("append")
    new = old + new if begins else new
    source = write_tree(top / "s", tree({"f": new}))
    held = write_tree(top / "d", tree({"f": File(old, 0o644, 1)}))
    assert run_sync(source, held, SyncOptions(append=True, fsync=False)).problems == []
    assert (held / "f").read_bytes() == (new if len(new) > len(old) else old)


@pytest.mark.parametrize("other", ["--update", "--size-only", "--checksum"])
@pytest.mark.parametrize("option", ["--append", "--append-verify"])
def test_wrong_mixes(option: str, other: str, tmp_path: Path) -> None:
    ended = command("sync", option, other, f"{tmp_path}/", f"{tmp_path}/d/")
    assert ended.code == ExitCode.USAGE
    assert f"--append and {other} exclude each other" in ended.err
    assert os.listdir(tmp_path) == []


def test_an_append_only_root_refuses_it(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", HELD)
    (tmp_path / "outside").mkdir()
    served = forced(tmp_path, f"--root={top}", "--append-only")
    ended = command("sync", "--no-catalog", "--append", "-e", served, f"{source}/", "h:")
    assert ended.code == ExitCode.REFUSED
    assert "leave out --append" in ended.err
    assert describe(HELD, read_tree(top)) == []
