"""--max-alloc, rsync's name of --max-memory, beside rsync: which sizes it takes, and what the limit ends."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.session.runtime.commands import entries_memory
from tests.support.running.syncing import FAR, PSEUDO_SSH, command

MANY = 6_000
"""Entries of 200 bytes each or more: past 1 MiB."""


def test_the_limit_is_what_was_asked_for_or_a_share_of_the_machine() -> None:
    assert entries_memory(5_000_000) == 5_000_000
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert (entries_memory(None), entries_memory(0)) == (physical // 2, physical)


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("size", ["1000", "100k", "-5", "abc", "0x"])
def test_rsync_refuses_the_same_sizes(size: str, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    words = (f"--max-alloc={size}", f"{tmp_path}/s/", f"{tmp_path}/d/")
    theirs = subprocess.run(["rsync", "-a", *words], check=False, capture_output=True)
    ours = command("sync", *words)
    assert (ours.code, len(ours.complaints)) == (theirs.returncode, 1) == (ExitCode.USAGE, 1)
    assert not (tmp_path / "d").exists()


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("size", ["0", "1M", "1.5G", "1048576"])
def test_rsync_takes_the_same_sizes(size: str, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/f").write_text("f")
    word, place = f"--max-alloc={size}", f"{tmp_path}/s/"
    subprocess.run(["rsync", "-a", word, place, f"{tmp_path}/r/"], check=True)
    assert command("sync", word, place, f"{tmp_path}/d/").code == 0
    assert (tmp_path / "d/f").read_text() == (tmp_path / "r/f").read_text() == "f"


def test_more_entries_than_it_lets_this_side_keep_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for number in range(MANY):
        (tmp_path / "s" / f"{number}").touch()
    pull = ("sync", "-n", "-e", str(PSEUDO_SSH), f"--remote-path={FAR}")
    places = (f"h:{tmp_path}/s/", f"{tmp_path}/d/")
    ended = command(*pull, "--max-alloc=1M", *places)
    assert (ended.code, len(ended.complaints)) == (ExitCode.FILE_IO, 1)
    assert "raise --max-memory" in ended.err
    for size in ("0", "100M"):
        assert command(*pull, f"--max-alloc={size}", *places).code == 0
