"""--fuzzy, which is always on: a new file is made of one that resembles it at DST, beside rsync's."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import read_tree, tree, write_tree

BASE = random.Random(1).randbytes(300_000)
NEW = "d1/d2/archive-v2.tar"
HELD = {
    "d1/d2/archive-v1.tar": BASE[:280_000] + b"older tail data",
    "d1/d2/archive-old.tar": BASE[:200_000],
    "d1/d2/unrelated.dat": b"nothing alike" * 1000,
}
"""As in rsync's scenario: the new file shares 280,000 bytes with the one whose name is nearest."""

UNKNOWN = 25_000
"""Bytes: 20,000 that DST does not have, and what is said of the others."""


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_a_new_file_is_made_of_one_that_resembles_it(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({NEW: BASE}))
    destination = write_tree(tmp_path / "destination", tree(HELD))
    done = run_sync(source, destination, SyncOptions(fsync=False), way=way).done
    assert read_tree(destination)[NEW.encode()] == read_tree(source)[NEW.encode()]
    assert done.reused_bytes >= 275_000
    assert done.bytes_sent + done.bytes_received < UNKNOWN


@pytest.mark.parametrize("way", list(Way))
def test_a_file_under_another_name_is_not_sent(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"rsync.c": BASE}))
    destination = write_tree(tmp_path / "destination", tree({"rsync2.c": BASE}))
    run = run_sync(source, destination, SyncOptions(delete=True, fsync=False), way=way)
    assert (run.done.literal_bytes, run.done.moved) == (0, 1)
    assert {path for path in read_tree(destination) if path} == {b"rsync.c"}


def test_the_option_changes_nothing_and_whole_files_use_no_base(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({NEW: BASE}))
    for words, most in ((("-y",), UNKNOWN), (("--fuzzy", "-yy"), UNKNOWN)):
        destination = write_tree(tmp_path / words[-1], tree(HELD))
        assert command("sync", *words, "--no-fsync", f"{source}/", f"{destination}/").code == 0
        assert (destination / NEW).read_bytes() == BASE and most == UNKNOWN
    destination = write_tree(tmp_path / "whole", tree(HELD))
    options = replace(SyncOptions(fsync=False), whole_file=True)
    assert run_sync(source, destination, options).done.literal_bytes == len(BASE)
