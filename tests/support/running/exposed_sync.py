"""Syncs between random trees with random owners, modes and ACLs, of which every moment is judged."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

from tests.support.project_paths import TOP
from tests.support.running.recorded_access import Look, exposures, look, states
from tests.support.running.syncing import FAR, PSEUDO_SSH, RDC, Way

__all__ = ["ExposedSync"]

NAMES = "abcde"
FILLERS = 210
"""More entries than a manifest that differs is listed whole with."""

_FILE_MODES = (0o600, 0o640, 0o644, 0o660, 0o666, 0o604, 0o755, 0o4755, 0o2755, 0o400)
_DIRECTORY_MODES = (0o700, 0o750, 0o755, 0o770, 0o777, 0o711, 0o1777, 0o2775, 0o500, 0o555)
_OWNERS, _GROUPS = (0, 1001, 1002), (0, 2001, 2002)


class ExposedSync:
    """A source and a destination made from a seed."""

    def __init__(self, place: Path, recorder: Path, seed: int, *, uid: int) -> None:
        """`uid`: who syncs, this process's or NOBODY. Only root has entries of several owners."""
        self._random = random.Random(seed)
        self._recorder = recorder
        self._uid = uid
        self.source, self.destination = place / "source", place / "destination"
        self._log, self._place = place / "log", place
        self._acls = uid == 0 and self._random.random() < 0.5
        self.way = self._random.choice(list(Way)) if uid == os.geteuid() else Way.HERE
        chances = (("-A", 1.0 if self._acls else 0.0), ("--delete", 0.7), ("-H", 0.4), ("-c", 0.2))
        self._options = [option for option, chance in chances if self._random.random() < chance]
        self._make()

    def _make(self) -> None:
        rng = self._random
        contents: dict[str, bytes] = {}
        many = rng.random() < 0.2
        for top in (self.source, self.destination):
            if top is self.destination and rng.random() < 0.2:
                return  # a new one
            top.mkdir()
            directories = [top]
            for _ in range(rng.randrange(1, 9)):
                directory = rng.choice(directories) / rng.choice(NAMES)
                if not directory.exists() and len(directory.parts) - len(top.parts) < 4:
                    directory.mkdir()
                    directories.append(directory)
            for _ in range(rng.randrange(2, 14)):
                file = rng.choice(directories) / rng.choice(NAMES)
                if not file.exists():
                    key = str(file.relative_to(top))
                    content = rng.randbytes(rng.choice((0, 5, 700, 3_000, 90_000)))
                    if top is self.destination and contents and rng.random() < 0.7:
                        # What is there already: at this path, or at another.
                        content = contents.get(key, rng.choice(list(contents.values())))
                        content = content + b"more" if rng.random() < 0.3 else content
                    contents.setdefault(key, content)
                    file.write_bytes(content)
                    os.utime(file, (1, rng.choice((1, 1, 2))))
            if rng.random() < 0.2 and file.is_file():
                os.link(file, top / "link")
            if many:
                (top / "many").mkdir()
                for number in range(FILLERS):
                    (top / "many" / f"f{number}").write_bytes(b"")
                    os.utime(top / "many" / f"f{number}", (1, 1))
            self._dress(top)

    def _dress(self, top: Path) -> None:
        """Owners, modes and ACLs, from the bottom up."""
        rng = self._random
        for place, _, files in sorted(os.walk(top, topdown=False), reverse=True):
            for path, modes in (
                *((Path(place) / name, _FILE_MODES) for name in sorted(files)),
                (Path(place), _DIRECTORY_MODES),
            ):
                if self._uid == 0:
                    os.chown(path, rng.choice(_OWNERS), rng.choice(_GROUPS))
                else:
                    os.chown(path, self._uid, self._uid)
                # Who keeps no owners need not keep setuid and setgid bits either.
                path.chmod(rng.choice(modes) & (0o7777 if self._uid == 0 else 0o1777))
                if self._acls and rng.random() < 0.4:
                    os.setxattr(path, "system.posix_acl_access", self._acl())
                if self._acls and path.is_dir() and rng.random() < 0.4:
                    os.setxattr(path, "system.posix_acl_default", self._acl())

    def _acl(self) -> bytes:
        """One that names a user."""
        rng = self._random
        entries = (
            (1, 7, 0xFFFFFFFF),
            (2, rng.randrange(8), rng.choice((1001, 1002))),
            (4, rng.randrange(8), 0xFFFFFFFF),
            (16, rng.randrange(8), 0xFFFFFFFF),
            (32, rng.choice((0, 4, 5)), 0xFFFFFFFF),
        )
        return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)

    def run(self, *, kill: int | None = None) -> tuple[int, list[str]]:
        """One sync, or as much of it as `kill` calls are. How many moments there were, and what was wrong."""
        held, wanted = look(self.destination), look(self.source)
        self._log.write_bytes(b"")
        self._log.chmod(0o666)
        source, destination = f"{self.source}/", f"{self.destination}/"
        if self.way is Way.PUSH:
            destination = f"far:{destination}"
        if self.way is Way.PULL:
            source = f"far:{source}"
        shell = [] if self.way is Way.HERE else ["-e", str(PSEUDO_SSH), "--remote-path", FAR]
        options = ["--no-fsync", "--force-empty", *self._options]
        environment = {
            **os.environ,
            "LD_PRELOAD": str(self._recorder),
            "RDC_CATALOG": "off",
            "RECORDED_TREE": str(self.destination),
            "RECORDED_TO": str(self._log),
            **({} if kill is None else {"RECORDED_KILL": str(kill)}),
        }
        program = (
            RDC
            if self._uid == os.geteuid()
            else (sys.executable, "-m", "tests.support.children.command_of_nobody")
        )
        ended = subprocess.run(
            [*program, "sync", *shell, *options, source, destination],
            env=environment,
            cwd=TOP,
            capture_output=True,
            text=True,
            check=False,
        )
        killed = kill is not None and ended.returncode != 0
        # Without --delete a directory that is not empty stays in a file's place.
        blocked = ended.returncode == 23 and "--delete" not in self._options and "in the way" in ended.stderr
        assert killed or blocked or ended.returncode == 0, (ended.returncode, ended.stderr)
        found = list(states(self._log))
        passed: set[object] = set()
        wrong = [line for state in found for line in exposures(state, held, wanted, passed, runner=self._uid)]
        if not killed and not blocked:
            wrong += self._unlike(wanted)
        return len(found), wrong

    def _unlike(self, wanted: Look) -> list[str]:
        """Return the entries that differ from what the run was to make."""
        found = look(self.destination)
        return [
            f"in the end {path!r}: {found.get(path)}, not {seen}"
            for path, seen in wanted.items()
            if path not in found
            or (seen.mode, seen.uid, seen.gid) != (found[path].mode, found[path].uid, found[path].gid)
            or (self._acls and seen.acl != found[path].acl)
        ]
