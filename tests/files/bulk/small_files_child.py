"""Commits small files again and again, each time with another system call failing or being the last.

Run with armed_calls.c preloaded: small_files_child.py TOP kill|ERRNO fsync|no-fsync DEPTH FIRST STEP. Takes
the call FIRST, and every STEP-th from there. Prints how many calls there were, and how often which part of
the files was there afterwards.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import sys
from array import array
from collections import Counter
from itertools import count
from pathlib import Path

from rdc.errors import FileError, OutOfSpaceError
from rdc.files.bulk import small_files  # noqa: F401 - loaded before any call fails
from rdc.files.bulk.small_files import ListedFiles, NewVersions
from rdc.files.replace.commit_group import CommitGroup, sweep_temporaries
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
from rdc.lean import threads  # noqa: F401 - loaded before any call fails
from rdc.model.entries import IdentityColumns, Listing, Metadata, PackedListing

CONTENTS = {b"a": b"first", b"b": b"", b"in-the-way": b"new", b"z": b"z" * 5000}
VERSIONS = {b"v": (b"old version", b"new"), b"d/v": (b"", b"n" * 3000), b"d/w": (b"o" * 9000, b"newer")}
"""Path: what is to be replaced, and what by."""
MTIME = 1_234_567_890_123_456_789
OWNER = os.geteuid() == 0
META = Metadata(0o640, MTIME, 1234 if OWNER else os.geteuid(), 2345 if OWNER else os.getegid())


def packed(contents: dict[bytes, bytes]) -> PackedListing:
    n = len(contents)
    return Listing(
        tuple(contents),
        bytes(n),
        array("H", [META.mode]) * n,
        array("Q", map(len, contents.values())),
        array("q", [MTIME]) * n,
        array("I", [META.uid]) * n,
        array("I", [META.gid]) * n,
        (),
    ).packed()


def prepare(top: Path) -> None:
    shutil.rmtree(top, ignore_errors=True)
    (top / "d").mkdir(parents=True)
    (top / "d" / "in-the-way").write_bytes(b"old")
    for path, (old, _) in VERSIONS.items():
        (top / os.fsdecode(path)).write_bytes(old)


def commit(
    top: Path, committed: list[bytes], failed: list[FileError], *, fsync: bool, depth: int
) -> list[bytes]:
    """Files of two directories, in one of which something is in the way. Returns what was not staged."""
    root = Root.open(os.fsencode(top))
    root = root.having(ReadPolicy(depth=depth))
    listing, content = packed(CONTENTS), b"".join(CONTENTS.values())
    unstaged = []
    most = 6 if depth == 1 else 8  # of both directories together, where they may be staged ahead
    with CommitGroup(
        root, fsync=fsync, on_commit=committed.append, on_error=failed.append, files=most
    ) as group:
        both = [ListedFiles(directory, listing) for directory in (b"", b"d")]
        group.stage_ahead(both, memoryview(2 * content), OWNER)
        for directory in (b"", b"d"):
            rows = group.add_small(directory, listing, content, OWNER)
            unstaged += [os.path.join(directory, list(CONTENTS)[row]) for row in rows]
        expected = [root.identity(path) for path in VERSIONS]
        new = {path: content for path, (_, content) in VERSIONS.items()}
        columns = packed(new)
        versions = NewVersions(
            list(new),
            IdentityColumns(expected),
            columns.modes,
            columns.sizes,
            columns.mtimes,
            columns.uids,
            columns.gids,
        )
        changed, rows = group.add_versions(versions, b"".join(new.values()), OWNER)
        unstaged += [list(new)[row] for row in (*changed, *rows)]
    return unstaged


def check(top: Path, committed: list[bytes] | None, failed: list[bytes]) -> str:
    """Old or new, never neither; what was called committed is new; litter can be swept."""
    root = Root.open(os.fsencode(top))
    new = 0
    for directory in (b"", b"d"):
        for name, content in CONTENTS.items():
            path = os.path.join(directory, name)
            place = top / os.fsdecode(path)
            found = place.read_bytes() if place.exists() else None
            if path == b"d/in-the-way":
                assert found == b"old"
                continue
            assert found in ({content} if path in (committed or []) else {content, None}), path
            if found is not None:
                assert root.metadata(path) == META, path
                new += 1
            elif committed is not None:
                assert path in failed, path
        for path, versions in VERSIONS.items():
            place = top / os.fsdecode(path)
            found = place.read_bytes()
            assert found in versions[path in (committed or []) :], path
            if found == versions[1]:
                assert root.metadata(path) == META, path
            elif committed is not None:
                assert path in failed, path
        litter = root.listed(directory).reserved
        assert sweep_temporaries(root, directory, litter) == len(litter)
        assert committed is None or len(litter) <= 1, litter  # of an unlink that failed
        for name in root.listed(directory).reserved:
            sys.exit(f"{name!r} stays")
    return "none" if not new else "all" if new == 2 * len(CONTENTS) - 1 else "some"


def main() -> None:
    top, what, sync = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "fsync"
    depth = int(sys.argv[4])
    armed = ctypes.CDLL(None)
    found: Counter[str] = Counter()
    # A collection in a child would copy all pages of what is loaded.
    gc.freeze()
    gc.disable()
    for number in count(*map(int, sys.argv[5:])):
        prepare(top)
        read_end, write_end = os.pipe()
        child = os.fork()
        if not child:
            committed: list[bytes] = []
            failed: list[FileError] = []
            unstaged: list[bytes] = []
            armed.arm(ctypes.c_long(number), 0 if what == "kill" else int(what))
            try:
                unstaged = commit(top, committed, failed, fsync=sync, depth=depth)
            except (OutOfSpaceError, FileError):
                unstaged = [os.path.join(d, name) for d in (b"", b"d") for name in CONTENTS]
                unstaged += VERSIONS
            calls = armed.disarm()
            if what != "kill":
                found[check(top, committed, [*unstaged, *(error.path_bytes for error in failed)])] += 1
            os.write(write_end, json.dumps([calls, dict(found)]).encode())
            os._exit(0)
        os.close(write_end)
        with open(read_end, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        if what == "kill" and os.WIFSIGNALED(status):
            found[check(top, None, [])] += 1
            continue
        assert status == 0, f"call {number} ended with {status}"
        calls, seen = json.loads(said)
        if what != "kill":
            found = Counter(seen)
        if number >= calls:
            print(json.dumps([calls, dict(found)]))
            return


if __name__ == "__main__":
    main()
