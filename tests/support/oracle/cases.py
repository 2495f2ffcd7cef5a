"""One case: rsync and rdc with the same scene and the same options."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.oracle.operands import CONTENTS, Operands
from tests.support.oracle.scenes import Scene
from tests.support.running.compared_trees import Seen, View, linked, view
from tests.support.running.syncing import command

__all__ = ["Case", "Outcome", "SilentRsyncError", "run_case"]

REMARKS = (
    "created directory ",
    "cannot delete non-empty directory: ",
    "could not make way for ",
    "IO error encountered",
    "skipping non-regular file ",
)
"""Lines of rsync that rdc writes on stderr, if at all."""

RULE_LINES = b"; what two tools read alike\n\n# nothing\n/b/a\na-*\n*.b/\n"
"""The file of --exclude-from and --include-from."""
BESIDE_SOURCE = "{beside}"
"""In a word: the directory that SRC is in."""

PATIENCE = 60
"""Seconds for one run."""


class SilentRsyncError(Exception):
    """rsync did not end within PATIENCE, so there is nothing to compare with."""


@dataclass(frozen=True, slots=True)
class Case:
    """The input of both programs."""

    scene: Scene
    words: tuple[str, ...]
    operands: Operands = CONTENTS


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output of one program, and the tree it left."""

    planned_code: int
    plan: tuple[str, ...]
    """Sorted lines of `-n -i`."""
    code: int
    lines: tuple[str, ...]
    """Sorted lines of `-i`."""
    tree: View
    said: str
    """Its stderr."""
    left: tuple[bytes, ...] = ()
    """The paths that SRC has then, if files leave it."""
    accessed: tuple[tuple[bytes, int], ...] = ()
    """With -U, the access times at DST of what SRC has, in seconds."""
    shared: tuple[bytes, ...] = ()
    """The paths of files at DST that are names of a file of an alternate tree."""


def run_case(case: Case) -> tuple[Outcome, Outcome]:
    """rsync's outcome, and rdc's."""
    with tempfile.TemporaryDirectory(prefix="rdc-oracle-") as place:
        top = Path(place)
        source = case.scene.source.write(top / "source")
        (top / "temporary").mkdir()
        (top / "rules").write_bytes(RULE_LINES)
        outcomes = []
        for run in (_rsync, _rdc):
            within = top / run.__name__
            within.mkdir()
            destination = case.scene.destination.write(within / "destination")
            others = _alternates(case, within)
            elsewhere = list(map(_files, others))
            before = view(os.fsencode(destination))
            words = [word.replace(BESIDE_SOURCE, str(top)) for word in case.words]
            words += [*_taken(case, source), f"{destination}/"]
            planned_code, plan, _ = run("-n", "-i", *words)
            assert _unchanged(before, view(os.fsencode(destination))), f"{run.__name__} -n changed something"
            began = time.time_ns() - 10**9
            code, lines, said = run("-i", *words)
            accessed = _accessed(case, destination)
            found = _timed(view(os.fsencode(destination)), began)
            left: tuple[bytes, ...] = ()
            if "--remove-source-files" in case.words:
                left = tuple(sorted(view(os.fsencode(source))))
                shutil.rmtree(source)
                case.scene.source.write(source)
            shared = _shared(destination, others)
            assert list(map(_files, others)) == elsewhere, f"{run.__name__} changed another tree"
            outcomes.append(Outcome(planned_code, plan, code, lines, found, said, left, accessed, shared))
        return outcomes[0], outcomes[1]


def _alternates(case: Case, within: Path) -> list[Path]:
    """The alternate trees, made beside DST."""
    return [side.write(within / f"alternate{n}") for n, side in enumerate(case.scene.alternates)]


def _shared(destination: Path, alternates: Sequence[Path]) -> tuple[bytes, ...]:
    """See Outcome.shared."""
    inodes = {seen.inode for other in alternates for seen in _files(other).values()}
    return tuple(path for path, seen in _files(destination).items() if seen.inode in inodes)


def _files(top: Path) -> View:
    """The files of a tree, without what a further name changes."""
    return {
        path: replace(seen, names=0, ctime_ns=0)
        for path, seen in view(os.fsencode(top)).items()
        if seen.kind == stat.S_IFREG
    }


def _taken(case: Case, source: Path) -> list[str]:
    """The words about SRC, and the SRC operands."""
    taken = case.operands
    words = [*taken.words]
    if taken.listed is not None:
        end = "\0" if "-0" in words else "\n"
        file = source.with_name("list")
        file.write_bytes(os.fsencode("".join(line + end for line in taken.listed)))
        words.append(f"--files-from={file}")
    return [*words, *(f"{source}/{path}" for path in taken.paths)]


def _rsync(*words: str) -> tuple[int, tuple[str, ...], str]:
    # Without owners rdc keeps no groups either.
    owner = [word for word in words if word in {"-o", "--no-owner", "--no-o"}]
    more = ["--no-group"] if owner and owner[-1] != "-o" else []
    argv = ["rsync", "-a", "--modify-window=-1", *words, *more]
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise SilentRsyncError from error
    text = re.sub(rb"\\#([0-7]{3})", lambda m: b"\\x%02x" % int(m[1], 8), done.stdout)
    lines = (line for line in os.fsdecode(text).splitlines() if not line.startswith(REMARKS))
    return done.returncode, tuple(sorted(lines)), os.fsdecode(done.stderr)


def _rdc(*words: str) -> tuple[int, tuple[str, ...], str]:
    ended = command("sync", "--force-empty", "--no-fsync", "--no-catalog", *words)
    return ended.code, tuple(sorted(ended.out.splitlines())), ended.err


def _accessed(case: Case, destination: Path) -> tuple[tuple[bytes, int], ...]:
    if not {"-U", "-UU", "--atimes"} & set(case.words):
        return ()
    found = []
    for path in sorted({*case.scene.source.tree, *dict(case.scene.source.specials)}):
        try:
            here = os.lstat(destination / os.fsdecode(path))
        except OSError:
            continue
        if not (stat.S_ISDIR(here.st_mode) or stat.S_ISLNK(here.st_mode)):
            found.append((path, here.st_atime_ns // 10**9))
    return tuple(found)


def _unchanged(before: View, after: View) -> bool:
    return before == after


def _timed(found: View, began: int) -> View:
    """Return the view without what differs from run to run: inodes become groups of names, and times since
    the run began are left out."""
    groups = {path: b"\0".join(sorted(names)) for names in linked(found) for path in names}
    return {path: _comparable(seen, groups.get(path, b""), began) for path, seen in found.items()}


def _comparable(seen: Seen, group: bytes, began: int) -> Seen:
    return replace(
        seen,
        inode=0,
        names=hash(group) if group else 0,
        ctime_ns=0,
        room=0,
        mtime_ns=0 if seen.mtime_ns > began else seen.mtime_ns,
    )
