"""Content and metadata of one file: what the quick check sees, what -c sees, what a dry run leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import LONG_AGO, File, read_tree, tree, write_tree

BEFORE = File(b"content 1", 0o640, LONG_AGO)
CHANGES = {
    "nothing": (BEFORE, ".", "."),
    "mtime": (File(b"content 1", 0o640, LONG_AGO + 10**9), ".f..t......", ".f..t......"),
    "mtime by a nanosecond": (File(b"content 1", 0o640, LONG_AGO + 1), ".f..t......", ".f..t......"),
    "mode": (File(b"content 1", 0o4755, LONG_AGO), ".f...p.....", ".f...p....."),
    "mode and mtime": (File(b"content 1", 0o600, -1), ".f..tp.....", ".f..tp....."),
    "content and mtime": (File(b"content 2", 0o640, 7), ">f..t......", ">fc.t......"),
    "content alone": (File(b"content 2", 0o640, LONG_AGO), ".", ">fc........"),
    "size alone": (File(b"content", 0o640, LONG_AGO), ">f.s.......", ">fcs......."),
    "all": (File(b"", 0o777, 0), ">f.stp.....", ">fcstp....."),
}


@pytest.mark.parametrize("checksum", [False, True], ids=["quick check", "-c"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", list(Way))
def test_one_file(change: str, checksum: bool, way: Way, tmp_path: Path) -> None:
    after, quick, thorough = CHANGES[change]
    code = thorough if checksum else quick
    source, destination = (
        write_tree(tmp_path / "s", tree({"f": after})),
        write_tree(tmp_path / "d", tree({"f": BEFORE})),
    )
    rehearsed = run_sync(source, destination, SyncOptions(checksum=checksum, dry_run=True), way=way)
    assert read_tree(destination)[b"f"] == BEFORE
    run = run_sync(source, destination, SyncOptions(checksum=checksum), way=way)
    assert read_tree(destination)[b"f"] == (BEFORE if code == "." else after)
    sent = code.replace(">", "<") if way is Way.PUSH else code
    assert run.items == ([] if code == "." else [f"{sent} f"])
    assert len(rehearsed.items) == len(run.items)
    assert run.done.literal_bytes <= (len(after.content) if ">" in code else 0)
