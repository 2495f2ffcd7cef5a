"""Syncs of directories that live on, each compared with what rsync leaves, and each done twice.

What differs from rsync by intention is not compared: special files of SRC (`--no-D`), mtimes closer than two
seconds with `-u`, the time of directories that something was put into and that are not synced themselves, and
names of one file at DST that are to get different metadata, of those that are set in place.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.compared_trees import (
    BLOCK,
    Seen,
    View,
    differences,
    linked,
    taken_as_equal,
    view,
    zeros,
)
from tests.support.running.syncing import FAR, RDC, Way, command
from tests.support.trees.random_changes import Changes
from tests.support.trees.random_contents import Contents
from tests.support.trees.unprivileged import NOBODY, as_nobody

__all__ = ["ComparedSync", "DifferenceError"]

COARSE = 4 * 10**9
"""Nanoseconds: newer by less than two seconds is not newer to rsync -u."""

NARROWING = (
    ("-u",), ("--existing",), ("--ignore-existing",), ("--size-only",), ("--max-size=9000",),
    ("--min-size=100",), ("--min-size=50", "--max-size=20k"),
)  # fmt: skip
RULES = (
    "--exclude=*.log", "--exclude=/a1*", "--exclude=b*/", "--exclude=*.so", "--include=*.py", "--exclude=c?",
    "--exclude=/a*/**", "--include=*/", "--exclude=*.gz", "--filter=- m1*.py", "--filter=+ *.db",
)  # fmt: skip
MANNERS = ("-z", "--no-compress", "--bwlimit=30m", "--timeout=60", "--no-catalog", "--no-owner", "-S")
"""Options that must make no difference to the result, except for owners."""

KINDS = {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}
"""The kinds of entries that are synced."""

PATIENCE = 100
"""Seconds for one run."""


IDLE_BYTES = 1_500
"""On the wire of a run that finds all as it should be, but for what has to be told each time."""


class DifferenceError(AssertionError):
    """The scene is left as it is."""


@dataclass
class ComparedSync:
    """SRC and DST of one seed, in a place of their own, with a catalog that is kept from run to run."""

    place: Path
    seed: int
    samples: Path | None = None
    tally: Counter[str] = field(default_factory=Counter)
    _events: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = self._rng = random.Random(self.seed)
        fresh = rng.random() < 0.4
        self._changes = Changes(rng, Contents(rng, self.samples), fresh=fresh)
        top = os.fsencode(self.place)
        self._source, self._destination = top + b"/source", top + b"/destination"
        self._changes.fill(self._source, rng.choice((3, 20, 60, 200)))
        match rng.randrange(4):
            case 0:
                pass  # there is none
            case 1:
                self._changes.fill(self._destination, rng.choice((3, 40)))
            case _:
                _copy(self._source, self._destination)
                self._changes.change(self._destination, rng.choice((0, 0, 1, 10)))
        self._way = rng.choice((Way.HERE, Way.PUSH, Way.PULL))
        self._bound = self._way is Way.HERE and rng.random() < 0.5
        """Permissions bind whoever syncs, to whom all belongs."""
        if self._bound:
            os.chown(self.place, NOBODY, NOBODY)

    def run(self) -> None:
        """Run some syncs, each after some changes."""
        for number in range(self._rng.choice((1, 2, 4))):
            self._changes.change(self._source, self._rng.choice((1, 3, 10, 30)))
            if os.path.lexists(self._destination) and self._rng.random() < 0.3:
                self._changes.change(self._destination, self._rng.choice((1, 5)))
            self._step(number)

    # One sync

    def _words(self) -> tuple[list[str], list[str]]:
        """Options for both, and those that only rdc has or that differ for none of what is compared."""
        rng = self._rng
        both = [
            word
            for word, chance in (("--delete", 0.5), ("-c", 0.2), ("-H", 0.3), ("-X", 0.3), ("-A", 0.3))
            if rng.random() < chance
        ]
        if self._bound:
            # Two files that cannot be read are equal to rsync -c; with -H one name may do.
            both = [word for word in both if word not in {"-c", "-H", "-X", "-A"}]
        if rng.random() < 0.15:
            both += rng.choice(NARROWING)
        if rng.random() < 0.2:
            both += rng.sample(RULES, rng.randint(1, 3))
            if "--delete" in both and rng.random() < 0.4:
                both.append("--delete-excluded")
        ours = [word for word in MANNERS if rng.random() < 0.12]
        return both, ours

    def _step(self, number: int) -> None:
        both, ours = self._words()
        owners = "--no-owner" not in ours
        who = "as nobody" if self._bound else self._way.name.lower()
        self._say = f"seed {self.seed}, step {number}, {who}: {shlex.join(both + ours)}"
        if "-u" in both:
            for top in (self._source, self._destination):
                _coarsen(top)
        if self._bound:
            _give(self._source)
            _give(self._destination)
        # What a rule excludes agrees with nothing, nor does what rsync makes writable before it deletes it.
        ruled = any(word.startswith(("--exclude", "--include", "--filter")) for word in both)
        _part(
            self._destination,
            None if ruled else view(self._source),
            times="-c" in both or "--size-only" in both,
            stays=not (self._bound and "--delete" in both),
        )
        held = view(self._destination) if os.path.lexists(self._destination) else {}
        theirs = os.fsencode(self.place) + b"/theirs"
        shutil.rmtree(theirs, ignore_errors=True)
        if os.path.lexists(self._destination):
            _copy(self._destination, theirs)
        before, now = view(self._source), time.time_ns() - 10**9
        code = self._rsync(
            *both, *([] if owners else ["--no-owner", "--no-group"]), self._source + b"/", theirs + b"/"
        )
        in_place = {path for path, here in before.items() if here.kind == stat.S_IFDIR} & {
            path for path, here in held.items() if here.kind != stat.S_IFDIR
        }
        if code is None or ("--ignore-existing" in both and in_place):
            return  # rsync gives a file that stays in a directory's place the directory's time
        expected = view(theirs)
        rehearsed, rehearsed_code = None, 0
        kill = held and not self._bound and not {"-u", "--existing", "--ignore-existing"} & set(both)
        if self._rng.random() < 0.2:
            rehearsal = self._rdc("-n", *both, *ours)
            rehearsed_code = rehearsal["exit"]
            rehearsed = None if rehearsed_code else self._items()
            self._equal(
                held, view(self._destination) if os.path.lexists(self._destination) else {}, "after -n"
            )
        elif kill and self._rng.random() < 0.2:
            self._killed(held, expected, *both, *ours)
        first = self._rdc(*both, *ours)
        # A run opens its own directories that are closed, for as long as it needs; -n leaves them closed.
        closed = [path for path, here in held.items() if here.kind == stat.S_IFDIR and ~here.mode & 0o700]
        self._require(
            not rehearsed_code or first["exit"] or (self._bound and closed != []),
            f"-n ended with {rehearsed_code}, the run with 0",
        )
        # Names of one file that a run sets right at once have one line less.
        if rehearsed is not None and not first["exit"] and "-H" not in both and not linked(held):
            odd = set(rehearsed) ^ set(self._items())
            self._require(not odd, f"not both told by -n and done: {odd}")
        found = view(self._destination)
        if {"-H", "-u"} <= set(both):
            # A further name that is newer rsync links all the same, and what it held is lost.
            newer = {
                path for names in linked(before) for path in names if _newer(held.get(path), before[path])
            }
            expected.update({path: held[path] for path in newer & expected.keys()})
        unread = {}
        if "-c" not in both and "-H" in both:
            unread = taken_as_equal(before, held, by_size="--size-only" in both)
        if self._bound and "--delete" in both:
            # What could not be read keeps rsync from some deletions and rdc from all; what is closed, rsync.
            gone = held.keys() - before.keys()
            if "--delete-excluded" in both:
                # Of what both trees have, too, the rules decide what goes.
                gone |= held.keys() - expected.keys()
            # A directory that is in the way of something else goes as all that is in it does, or not at all.
            gone |= {
                path
                for path in before.keys() & held.keys() & found.keys()
                if before[path].kind != stat.S_IFDIR == held[path].kind == found[path].kind
            }
            for path in gone:
                expected.pop(path, None)
                if path in found:
                    # A directory is opened to be emptied; both leave it so where something in it stays.
                    opened = held[path].kind == stat.S_IFDIR
                    expected[path] = replace(held[path], mode=found[path].mode if opened else held[path].mode)
        if self._bound:
            # rsync removes what is of another kind before it finds that it cannot read the file of SRC.
            for path in before.keys() & held.keys() - expected.keys():
                if before[path].kind == stat.S_IFREG != held[path].kind:
                    expected[path] = held[path]
            # A directory in the way of something else it leaves open where that stays, and cannot empty of
            # directories that it cannot list: rdc opens them.
            for path in before.keys() & held.keys() & expected.keys() & found.keys():
                wanted, was, left = before[path], held[path], expected[path]
                if not wanted.kind != stat.S_IFDIR == was.kind == left.kind:
                    continue
                if "--delete" in both and found[path].kind == wanted.kind:
                    expected[path] = wanted
                elif left.mode & ~0o700 == was.mode & ~0o700:
                    expected[path] = replace(left, mode=was.mode)
            # It also leaves a directory open that it could not read there.
            for path, here in before.items():
                there = expected.get(path)
                if there and here.kind == there.kind == stat.S_IFDIR and there.mode == here.mode | 0o700:
                    expected[path] = replace(there, mode=here.mode)
        # Without privileges rdc keeps no owners, and rsync's set-id bits all the same.
        kept = ["--no-owner"] if self._bound else []
        lines = differences(expected, found, [*both, *ours, *kept], now=now, unread=unread)
        self._require(not lines, "\n".join(lines))
        if "-S" in ours:
            # With -H what was there may have got another name.
            old = {here.inode for here in held.values()}
            written = [p for p, here in found.items() if p in expected and here.inode not in old]
            full = [
                p
                for p in written
                if found[p].kind == stat.S_IFREG
                and found[p].room > expected[p].size - zeros(self._destination, p) + 2 * BLOCK
            ]
            self._require(not full, f"no holes in {[(p, found[p], expected[p]) for p in full]}")
        if "-H" in both:
            # To what only DST has a name may stay linked or not, as the file is that it is linked to.
            theirs_linked, ours_linked = (
                linked({path: seen for path, seen in tree.items() if path in before})
                for tree in (expected, found)
            )
            self._require(theirs_linked <= ours_linked, f"{theirs_linked ^ ours_linked}")
        # With -c two files that cannot be read are equal to rsync.
        failed = first["exit"] != 0
        alike = failed == bool(code) or (self._bound and "--delete" in both)
        self._require(alike, f"rsync ended with {code}, rdc with {first}")
        self._equal(before, view(self._source), "at the source")
        fetched = sum(here.size for path, here in before.items() if not _held(here, held.get(path)))
        wire = first["bytes_sent"] + first["bytes_received"]
        self._require(
            wire <= 1.03 * fetched + 500 * len(before) + 120 * len(held) + 8_000,
            f"{wire} for {fetched}: {first}",
        )
        again = self._rdc(*both, *ours)
        # Where what is closed is opened for what then cannot be read, each run closes it again.
        self._equal(found, view(self._destination), "by the second run", times=not (failed and self._bound))
        self._require(
            (again["changed"], again["deleted"], again["literal_bytes"]) == (0, 0, 0)
            and again["exit"] == first["exit"],
            f"the second run: {again}",
        )
        wire = again["bytes_sent"] + again["bytes_received"]
        narrowed = again["exit"] != 0 or before.keys() != found.keys() or set(both) - {"--delete"}
        told = sum(6 * len(path) + 100 for path, here in before.items() if here.kind not in KINDS)
        # Small trees are listed, with targets of links of thousands of bytes.
        listed = sum(
            400 + 8 * len(path) + (len(here.said) if here.kind == stat.S_IFLNK else 0)
            for path, here in before.items()
        )
        narrowed = narrowed or (told and "--no-catalog" in ours)  # nobody remembers what stays different
        self._require(
            wire <= IDLE_BYTES + told + (listed if narrowed else 0),
            f"the second run: {again}",
        )
        self.tally["syncs"] += 1
        self.tally["fetched"] += fetched

    def _require(self, held: bool, otherwise: str) -> None:
        if not held:
            events = "\n".join(json.dumps(event) for event in self._events[-60:])
            raise DifferenceError(f"{self._say}\n{otherwise}\nthe last run told:\n{events}")

    def _equal(self, before: View, after: View, when: str, *, times: bool = True) -> None:
        """Check that nothing was even touched: the ctime shows it, except of the directory itself, where rdc
        may test how finely times are stored."""
        pairs = {path: (before.get(path), after.get(path)) for path in before.keys() | after.keys()}
        changed = [
            path
            for path, (one, other) in pairs.items()
            if one != other
            and not (
                one and other and (not path or not times) and replace(one, ctime_ns=other.ctime_ns) == other
            )
        ]
        self._require(
            not changed,
            f"touched {when}: " + "\n".join(f"{p!r}\n  {before.get(p)}\n  {after.get(p)}" for p in changed),
        )

    def _rsync(self, *words: str | bytes) -> int | None:
        """Run rsync and return its exit code; None if it fails or hangs, as with -H where a directory is in a
        file's place."""
        argv = ["rsync", "-a", "--no-D", "--modify-window=-1", *words]
        who = NOBODY if self._bound else None
        groups = () if self._bound else None
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                check=False,
                timeout=PATIENCE / 5,
                user=who,
                group=who,
                extra_groups=groups,
            )
        except subprocess.TimeoutExpired:
            self.tally["rsync hung"] += 1
            return None
        if done.returncode not in {0, 23}:
            self._require("-H" in words, f"rsync: {done.stderr.decode(errors='replace')}")
            return None
        return done.returncode

    def _command(self, *words: str) -> list[str | bytes]:
        source, destination = self._source + b"/", self._destination
        match self._way:
            case Way.PUSH:
                destination = b"far:" + destination
            case Way.PULL:
                source = b"far:" + source
        shell = ["-e", str(PSEUDO_SSH), "--remote-path", FAR] if self._way is not Way.HERE else []
        return [
            *RDC,
            "sync",
            "--json",
            "--force-empty",
            "--no-fsync",
            "--no-D",
            *shell,
            *words,
            source,
            destination,
        ]

    def _environment(self) -> dict[str, str]:
        kept = {
            name: os.environ[name] for name in ("PATH", "LD_PRELOAD", "ASAN_OPTIONS") if name in os.environ
        }
        return kept | {"HOME": str(self.place), "XDG_CACHE_HOME": str(self.place / "cache")}

    def _rdc(self, *words: str) -> dict[str, Any]:
        code, out, said = self._ended(*words)
        self._require(code in {0, 11, 23} and "internal" not in said, f"{code}: {said}")
        self._events = [json.loads(line) for line in out.splitlines()]
        last = self._events[-1]
        self._require(last["event"] == "summary" and last["exit"] == code, f"{last}")
        return last

    def _items(self) -> list[str]:
        """Return the items of the last run. -n cannot know whether a content will be sent or found equal, so
        that is left out."""
        items = [event for event in self._events if event["event"] == "item"]
        return sorted(json.dumps({**item, "change": item["change"][1:]}) for item in items)

    def _ended(self, *words: str) -> tuple[int, str, str]:
        if self._bound:
            argv = list(map(os.fsdecode, self._command(*words)[len(RDC) :]))
            with patch.dict(os.environ, RDC_CATALOG=str(self.place / "catalog")):
                ended = as_nobody(lambda: command(*argv))
            return ended.code, ended.out, ended.err
        done = subprocess.run(
            self._command(*words),
            env=self._environment(),
            cwd="/",
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")

    def _killed(self, held: View, wanted: View, *words: str) -> None:
        """Both ends at some time on the way: each path is old or new then, and what is half made hidden."""
        started = subprocess.Popen(
            self._command(*words), env=self._environment(), cwd="/", start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(self._rng.uniform(0.05, 0.6))
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        self.tally["killed"] += started.wait() != 0
        for path, here in view(self._destination).items():
            name = path.rpartition(b"/")[2]
            if (
                name.startswith(b".rdc-")
                and name.endswith(b".tmp")
                and path not in held
                and path not in wanted
            ):
                continue
            old, new = held.get(path), wanted.get(path)
            self._require(
                any(each and each.kind == here.kind and each.said == here.said for each in (old, new)),
                f"after a kill {path!r} is neither\n  {old} nor\n  {new} but\n  {here}",
            )


def _newer(here: Seen | None, there: Seen) -> bool:
    return here is not None and here.kind == there.kind and here.mtime_ns > there.mtime_ns


def _held(here: Seen, there: Seen | None) -> bool:
    return there is not None and there.said == here.said


def _copy(old: bytes, new: bytes) -> None:
    subprocess.run(["cp", "-a", "--", old, new], check=True)


def _part(top: bytes, source: View | None, *, times: bool, stays: bool) -> None:
    """Names of one file become files, but where what they are to have agrees in what is set in place: with
    `times` mtimes, too. `stays`: what `source` does not have is to keep what it has; without `source`
    nothing agrees."""
    found = view(top) if os.path.lexists(top) else {}
    for names in linked(found):
        wanted = {
            (here.kind, here.mode, here.mtime_ns if times else 0, here.owners, here.attributes, here.access)
            for here in ((source or {}).get(name, found[name]) for name in names)
        }
        known = source is not None and (stays or names <= source.keys())
        if not known or len(wanted) > 1:
            for path in (os.path.join(top, name) for name in sorted(names)):
                _copy(path, top + b"~")
                os.rename(top + b"~", path)


def _give(top: bytes) -> None:
    """All of it to nobody; chown takes bits of modes away."""
    for path, here in view(top).items() if os.path.lexists(top) else ():
        if here.owners != (NOBODY, NOBODY):
            place = os.path.join(top, path) if path else top
            os.lchown(place, NOBODY, NOBODY)
            if here.kind != stat.S_IFLNK:
                os.chmod(place, here.mode)


def _coarsen(top: bytes) -> None:
    for place, _, files in os.walk(top):
        for path in (os.path.join(place, name) for name in files):
            when = os.lstat(path).st_mtime_ns // COARSE * COARSE
            os.utime(path, ns=(when, when), follow_symlinks=False)
