"""A process killed at random moments while it replaces files: every path is wholly old or wholly new."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from rdc.files.replace.commit_group import sweep_temporaries
from rdc.files.root.root import Root
from tests.files.replacing_child import MODES

CHILD = Path(__file__).with_name("replacing_child.py")
KILLS = 36
PATHS = 24


def test_kill_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(20_240_601)
    for index in range(3):
        (tmp_path / f"d{index}").mkdir()
    root = Root.open(os.fsencode(tmp_path))
    paths = [b"d%d/f%d" % (index % 3, index) for index in range(PATHS)]
    promised = dict.fromkeys(paths, 0)
    litter = 0
    for run in range(1, KILLS + 1):
        child = subprocess.Popen(
            [sys.executable, CHILD, os.fspath(tmp_path), str(PATHS), str(run)],
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        with child, child.stdout:
            said = [child.stdout.readline() for _ in range(rng.randrange(1, 60))]
            # Off the beat of the reports: between two of them there are many moments.
            time.sleep(rng.random() * 0.01)
            child.send_signal(signal.SIGKILL)
            said += child.stdout.readlines()
        for line in said:
            turn, path = line.split()
            promised[path] = max(promised[path], int(turn))
        for path in paths:
            if root.kind(path) is None:
                assert not promised[path]
                continue
            with root.open_read(path) as source:
                data = b"".join(source.spans())
                metadata = source.metadata
            body, digest = data[:-32], data[-32:]
            assert hashlib.sha256(body).digest() == digest
            name, found, _ = body.split(b" ", 2)
            assert name == path
            assert int(found) >= promised[path], "what was reported as committed is there"
            assert (metadata.mtime_ns, metadata.mode) == (int(found), MODES[int(found) % 2])
        for directory in (b"d0", b"d1", b"d2"):
            stale = root.listed(directory).reserved
            litter += len(stale)
            assert sweep_temporaries(root, directory, stale) == len(stale)
    assert litter, "some kills must have hit between a temporary's creation and its rename"
    left = [root.listed(directory) for directory in (b"d0", b"d1", b"d2")]
    assert sum(one.listing.count + len(one.reserved) for one in left) == PATHS
