"""A new file that the source cannot read, of which both its tree and its traits are asked for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import kinds, sync_in_turns
from tests.support.trees.trees import File, tree, write_tree


@pytest.mark.parametrize("dialler", list(Role))
def test_the_run_ends_and_reports_it(dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is newer than all that the destination has, so its tree comes unasked; and a removed file may be
    similar, so its traits are asked for. Two failures arrive, and each answers another request."""
    content = random.Random(1).randbytes(100_000)
    old = tree({"old": File(content, mtime_ns=10**18), "gone": File(content[:50_000], mtime_ns=10**18)})
    destination = write_tree(tmp_path / "d", old)
    new = {
        "new": File(b"x" + content, mtime_ns=2 * 10**18),
        "other": File(content[:50_001], mtime_ns=2 * 10**18),
    }
    source = write_tree(tmp_path / "s", tree(new))
    real = Root.open_read

    def open_read(root: Root, path: bytes) -> SourceFile:
        if path == b"new":
            raise root.refused(path, "read it", expected="a file", found="a bad disk", advice="replace it")
        return real(root, path)

    monkeypatch.setattr(Root, "open_read", open_read)
    run = sync_in_turns(source, destination, SyncOptions(delete=True, fsync=False), dialler=dialler)
    assert {"LikelyRequest", "TraitsRequest"} <= kinds(run)
    assert any("new: cannot read it" in text for text in map(str, run.problems)), run.problems
    assert (destination / "other").exists()
    assert (destination / "old").exists(), "deletions are withheld"
