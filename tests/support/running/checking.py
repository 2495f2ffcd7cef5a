"""Ways to run a check from a test, and a slow comparer that shares nothing with it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.checking.records import CheckOptions, CheckReport, EntryDiffers
from rdc.checking.run import CheckRun, operands_of
from rdc.errors import ExitCode
from rdc.library.trees import check
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from rdc.protocol.connection import DIALECT, Connection, Dialect
from rdc.session.serve import answer
from tests.support.running.run_pair import run_pair
from tests.support.running.syncing import Way, contents_of

__all__ = ["Checked", "Snapshot", "check_in_turns", "compare_slowly", "run_check", "snapshot"]

Found = dict[bytes, frozenset[str]]


@dataclass(slots=True)
class Checked:
    """A check that came to its end."""

    found: Found = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    report: CheckReport | None = None

    def differs(self, entry: EntryDiffers) -> None:
        assert entry.path_bytes not in self.found, "an entry is told once"
        assert entry.aspects.names, "an entry differs somehow"
        self.found[entry.path_bytes] = frozenset(entry.aspects.names)

    @property
    def done(self) -> CheckReport:
        assert self.report is not None
        return self.report

    @property
    def code(self) -> ExitCode:
        return self.done.exit

    @property
    def problems(self) -> list[Problem]:
        return [event for event in self.events if isinstance(event, Problem) and event.code]


def run_check(
    source: Path | bytes, destination: Path | bytes, options: CheckOptions | None = None
) -> Checked:
    """Both ends in this process."""
    places = [contents_of(place) if isinstance(place, Path) else place for place in (source, destination)]
    checked = Checked()
    checked.report = check(
        Location(None, places[0]),
        Location(None, places[1]),
        options or CheckOptions(SyncOptions()),
        reporter=checked.events.append,
        on_difference=checked.differs,
    )
    return checked


def check_in_turns(
    source: Path | bytes,
    destination: Path | bytes,
    options: CheckOptions | None = None,
    *,
    way: Way = Way.PULL,
    far_dialect: Dialect = DIALECT,
) -> Checked:
    """The far end behind a byte stream, in this thread: SRC with Way.PULL, DST with Way.PUSH."""
    places = [contents_of(place) if isinstance(place, Path) else place for place in (source, destination)]
    checked = Checked()
    hosts = ("far", None) if way is Way.PULL else (None, "far")
    run = CheckRun(
        operands_of(Location(hosts[0], places[0]), Location(hosts[1], places[1])),
        options or CheckOptions(SyncOptions()),
        checked.events.append,
        checked.differs,
        NoCatalog(),
    )
    signer = FileSigner()
    near = Connection(True, DIALECT.hello("rdc", signer.params.id))
    far = Connection(False, far_dialect.hello("rdc", signer.params.id), dialect=far_dialect)
    try:
        done, _ = run_pair(run.fetch(), near, answer(signer), far)
        checked.report = run.report(run.totals(done, near))
    finally:
        run.close()
        signer.close()
    return checked


def compare_slowly(
    source: Path, destination: Path, *, times: bool = True, modes: bool = True, links: bool = False
) -> Found:
    """Return what differs between two trees, by os.walk and read."""
    one, other = _entries(os.fsencode(source)), _entries(os.fsencode(destination))
    found: dict[bytes, set[str]] = {}
    for path in one.keys() | other.keys():
        here, there = one.get(path), other.get(path)
        if here is None or there is None:
            known = here if here is not None else there
            assert known is not None
            found[_shown(path, known)] = {"extra" if here is None else "missing"}
        else:
            # Of a path with two kinds, either kind may be shown.
            found[_shown(path, here)] = _aspects(
                source, destination, path, here, there, times=times, modes=modes
            )
    if links:
        _compare_links(one, other, found)
    return {path: frozenset(aspects) for path, aspects in found.items() if aspects}


def _aspects(
    source: Path,
    destination: Path,
    path: bytes,
    here: os.stat_result,
    there: os.stat_result,
    *,
    times: bool,
    modes: bool,
) -> set[str]:
    if stat.S_IFMT(here.st_mode) != stat.S_IFMT(there.st_mode):
        return {"kind"}
    found = set()
    paths = [os.path.join(os.fsencode(top), path) for top in (source, destination)]
    if stat.S_ISLNK(here.st_mode):
        if os.readlink(paths[0]) != os.readlink(paths[1]):
            found.add("symlink")
    elif modes and here.st_mode != there.st_mode:
        found.add("mode")
    if times and here.st_mtime_ns != there.st_mtime_ns:
        found.add("time")
    if os.geteuid() == 0:
        found |= {"owner"} if here.st_uid != there.st_uid else set()
        found |= {"group"} if here.st_gid != there.st_gid else set()
    if (
        stat.S_ISREG(here.st_mode)
        and Path(os.fsdecode(paths[0])).read_bytes() != Path(os.fsdecode(paths[1])).read_bytes()
    ):
        found.add("content")
    return found


def _compare_links(
    one: dict[bytes, os.stat_result], other: dict[bytes, os.stat_result], found: dict[bytes, set[str]]
) -> None:
    common = [
        path
        for path in one.keys() & other.keys()
        if stat.S_ISREG(one[path].st_mode) and stat.S_ISREG(other[path].st_mode)
    ]
    for path in common:
        groups = [
            {twin for twin in common if tree[twin].st_ino == tree[path].st_ino} for tree in (one, other)
        ]
        if groups[0] != groups[1]:
            found.setdefault(path, set()).add("links")


def _shown(path: bytes, entry: os.stat_result) -> bytes:
    return (path or b".") + (b"/" if stat.S_ISDIR(entry.st_mode) else b"")


def _entries(top: bytes) -> dict[bytes, os.stat_result]:
    found = {b"": os.lstat(top)}
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, top)] = os.lstat(path)
    return found


Snapshot = dict[bytes, tuple[int, ...]]


def snapshot(*tops: Path) -> Snapshot:
    """All that a check must leave alone of every entry: everything but the access time."""
    return {
        os.path.join(os.fsencode(top), path): (
            *(entry.st_dev, entry.st_ino, entry.st_mode, entry.st_nlink, entry.st_uid, entry.st_gid),
            *(entry.st_size, entry.st_blocks, entry.st_mtime_ns, entry.st_ctime_ns),
        )
        for top in tops
        for path, entry in _entries(os.fsencode(top)).items()
    }
