"""Replaces files in a loop until it is killed: argv is the directory, the number of paths, a seed.

Each content says which path and which round it is for and ends in its digest, so that a mixture or a
truncated file shows. Each commit is a line "round path" on stdout, written before the next commit is
reported.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys

from rdc.files.base.metadata import ANYTHING
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Metadata

MODES = (0o600, 0o640)


def content(path: bytes, turn: int) -> bytes:
    rng = random.Random(f"{path!r} {turn}")
    body = b"%s %d " % (path, turn) + rng.randbytes(rng.choice([10, 4000, 300_000]))
    return body + hashlib.sha256(body).digest()


def main() -> None:
    where, paths, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    root = Root.open(os.fsencode(where))
    turn = seed * 1_000_000

    def committed(path: bytes) -> None:
        os.write(1, b"%d %s\n" % (turn, path))

    while True:
        turn += 1
        # Small groups and large ones: fsync of each file and syncfs, in one directory and in several.
        with CommitGroup(root, on_commit=committed, files=rng.choice([1, 5, 100])) as group:
            for index in range(paths):
                path = b"d%d/f%d" % (index % 3, index)
                with Replacement(root, path) as replacement:
                    data = content(path, turn)
                    replacement.write(data[:100])
                    replacement.write(data[100:])
                    metadata = Metadata(MODES[turn % 2], turn, os.geteuid(), os.getegid())
                    group.add(replacement, path, metadata, False, ANYTHING)


if __name__ == "__main__":
    main()
