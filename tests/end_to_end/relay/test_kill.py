"""kill -9 of this machine's process or of either host's: each path at DST is old or new, what went can be
taken back, and the next run ends the work."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.support.relay.two_hosts import between, hosts_shell, summary
from tests.support.running.killed_sync import HELD, WANTED
from tests.support.running.syncing import RDC
from tests.support.share import examples
from tests.support.trees.old_or_new import check_old_or_new
from tests.support.trees.trees import describe, litter, read_tree, write_tree
from tests.support.undo.undo_runs import read_beside, undone
from tests.support.undo.undone_sync import census, unlike

SESSION_BYTES = 5_000_000
"""What passes on either hop in both directions, about."""


def far_program(top: Path) -> Path:
    """An rdc whose processes hold a lock while they run."""
    script = top / "far-rdc"
    script.write_text(f'#!/bin/sh\nexec 9<"$0"; flock -s 9; exec {" ".join(RDC)} "$@"\n')
    script.chmod(0o755)
    return script


def await_ends(program: Path) -> None:
    """Until each remote side has noticed its end and cleaned up."""
    import fcntl

    with program.open() as lock:
        for _ in range(1000):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
            else:
                return
    raise AssertionError("a remote side goes on")


@pytest.mark.parametrize("host", ["a", "b"], ids=["source's hop", "destination's hop"])
@pytest.mark.parametrize("victim", ["near", "far"], ids=["this machine", "the host"])
def test_kills_at_random_moments(host: str, victim: str, tmp_path: Path) -> None:
    rng = random.Random(f"{host}{victim}")
    write_tree(tmp_path / "one", WANTED)
    program = far_program(tmp_path)
    for number in range(examples(5)):
        top = tmp_path / str(number)
        write_tree(top, HELD)
        before = census(top)
        after = int(SESSION_BYTES * rng.uniform(0.02, 0.9)) if number else rng.randrange(100, 9_000)
        shell = hosts_shell(tmp_path, **{host: f"--signal=KILL:{victim}:{after}"})
        words = ("--delete", "--no-fsync", "--keep-undo=1G", f"a:{tmp_path}/one/", f"b:{top}")
        ended = between(*words, shell=shell, program=str(program), process=True)
        assert ended.code != 0
        if victim == "far":
            assert len(ended.complaints) == 1 and ended.complaints[0].startswith(f"rdc: {host}: "), ended
        await_ends(program)
        check_old_or_new(read_beside(top), HELD, WANTED, killed=True)
        if number % 2:
            undone(top)
            assert unlike(before, census(top)) == []
            continue
        summary(between("--json", "--delete", *words[-2:]))
        left = read_beside(top)
        whole = {path: node for path, node in left.items() if path not in litter(left)}
        assert describe(WANTED, whole) == []
    assert describe(WANTED, read_tree(tmp_path / "one")) == []


def test_a_signal_that_ends_this_machine_s_process(tmp_path: Path) -> None:
    """SIGINT is as Ctrl-C: exit code 20, and no traceback."""
    write_tree(tmp_path / "one", WANTED)
    shell = hosts_shell(tmp_path, a="--signal=INT:near:1000000")
    ended = between("--no-fsync", f"a:{tmp_path}/one/", f"b:{tmp_path}/two", shell=shell, process=True)
    assert ended.code == 20
    assert "Traceback" not in ended.err
    assert os.path.isdir(tmp_path / "two")
