"""Requests of a peer that is confined to a directory and wants more: random, and each known by its seed.

The peer asks for paths that lead out, sends trees whose names are those of links that lead out, sets any
option in any role, changes what its honest half says, and speaks messages that no client of rdc would speak.
After each request all that lies outside is compared with what it was, and the directory by what its rules
allow.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.daemon.access import KEY_TITLE, Access, admission
from rdc.errors import ExitCode
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Role
from rdc.session.serve import Admission, answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from tests.support.running.run_pair import run_pair
from tests.support.trees.trees import File, Link, Tree, tree, write_tree
from tests.support.wire.hostile_messages import (
    HELD,
    STORE,
    TEMPORARY,
    _ended,
    _Hostile,
    _options,
    _path,
    _sent,
    _speak,
)

__all__ = ["ACCESSES", "HostileRequests", "Snapshot", "snapshot"]

SECRET = b"secret of the account " + bytes(range(200, 240))
"""In each file outside of the directory."""

ACCESSES = {
    "all": Access(KEY_TITLE),
    "read-only": Access(KEY_TITLE, read_only=True),
    "write-only": Access(KEY_TITLE, write_only=True),
    "no-delete": Access(KEY_TITLE, no_delete=True),
    "append-only": Access(KEY_TITLE, append_only=True),
    "write-only append-only": Access(KEY_TITLE, write_only=True, append_only=True),
}


@dataclass(frozen=True)
class Found:
    """One entry, all that stat(2) and a read say of it."""

    kind: int
    mode: int
    uid: int
    gid: int
    inode: int
    links: int
    size: int
    mtime_ns: int
    ctime_ns: int
    content: bytes
    attributes: tuple[tuple[str, bytes], ...]


Snapshot = dict[str, Found]


def snapshot(top: Path, without: Path | None = None) -> Snapshot:
    """`top` and all below it but what is in `without`; no link is followed."""
    found: Snapshot = {}

    def look(path: str, name: str) -> None:
        at = os.lstat(path)
        content = b""
        if stat.S_ISLNK(at.st_mode):
            content = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(at.st_mode):
            content = Path(path).read_bytes()
        names = os.listxattr(path, follow_symlinks=False)
        attributes = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
        found[name] = Found(
            stat.S_IFMT(at.st_mode), stat.S_IMODE(at.st_mode), at.st_uid, at.st_gid, at.st_ino, at.st_nlink,
            at.st_size, at.st_mtime_ns, at.st_ctime_ns, content, attributes,
        )  # fmt: skip
        if stat.S_ISDIR(at.st_mode) and path != str(without):
            for child in sorted(os.listdir(path)):
                look(f"{path}/{child}", f"{name}/{child}" if name else child)

    look(str(top), "")
    return found


def _held(outside: Path) -> Tree:
    file = HELD * 3
    return tree(
        {
            "a": file + b"a",
            "b/one": file + b"one",
            "b/two": File(file + b"two", 0o600),
            "b/empty/.keep": b"",
            "c/deep/er": file + b"er",
            "d": File(b"", 0o444),
            TEMPORARY: File(file * 900),
            "out": Link(b"../outside"),
            "abs": Link(os.fsencode(outside)),
            "sec": Link(b"../outside/secret"),
            ".rdc-undo/1/kept/0": File(SECRET),
            ".rdc-undo/1/journal": File(SECRET, 0o600),
            "store": Link(b".rdc-undo"),
            "kept": Link(b".rdc-undo/1/kept"),
            "deep/up": Link(b"../.."),
            "deep/loop": Link(b"loop"),
            "deep/file": file + b"deep",
        }
    )


@dataclass
class HostileRequests:
    """Any number of requests to one directory, which is made anew before each that finds it changed."""

    place: Path
    ends: Counter[str] = field(default_factory=Counter)
    """How requests ended, by what is allowed and the exit code's name."""
    done: Counter[str] = field(default_factory=Counter)
    """What requests did to the directory, so that it shows that much can be done."""
    changed: int = 0
    """Requests that changed the directory."""

    def __post_init__(self) -> None:
        # So deep that no path of a request leads out of it, were nothing refused.
        world = self.place / "world/1/2/3/4/5/6"
        world.mkdir(parents=True)
        self.outside = write_tree(
            world / "outside",
            tree(
                {"secret": SECRET, "keys/authorized": SECRET, "one": SECRET, "a": SECRET, "empty/.keep": b""}
            ),
        )
        self.top = world / "top"
        self._make()

    def _make(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)
        write_tree(self.top, _held(self.outside))
        os.setxattr(self.top / "b/one", "user.mine", b"1")
        os.link(self.top / "b/two", self.top / "b/twin")
        self._before = snapshot(self.top)
        self._before_outside = self._outside()

    def _outside(self) -> Snapshot:
        found = snapshot(self.place / "world", without=self.top)
        # Entries come and go in it, which is what it is there for.
        del found[str(self.top.relative_to(self.place / "world"))]
        return found

    def request(self, seed: int, allowed: str | None = None) -> None:
        """One request under one of ACCESSES. Raises AssertionError, which tells of the seed, for what it must
        not do."""
        rng = random.Random(seed)
        allowed = allowed or rng.choice(list(ACCESSES))
        access = ACCESSES[allowed]
        here = self.place / "here"
        here.mkdir()
        try:
            options = _options(rng)
            admit = admission(os.fsencode(self.top), access)
            if rng.random() < 0.5:
                end, told = _speak(rng, admit, options), b""
                role = Role.DESTINATION
            else:
                role = rng.choice((Role.SOURCE, Role.DESTINATION, Role.DESTINATION))
                end, told = self._session(rng, admit, role, options, here)
            self.ends[f"{allowed} {end}"] += 1
            what = f"seed {seed}, {allowed}, {role.name}, {end}, {options}"
            assert self._outside() == self._before_outside, what
            assert SECRET not in told, what
            fetched = [found.content for found in snapshot(here).values()] if role is Role.SOURCE else []
            assert not any(SECRET in content for content in fetched), what
            after = snapshot(self.top)
            if access.write_only:
                assert HELD not in told, what
                assert not any(HELD in content for content in fetched), what
            if after != self._before:
                assert role is Role.DESTINATION and not options.dry_run, what
                self._check(access, after, what)
                self._make()
                self.changed += 1
        finally:
            shutil.rmtree(here)

    def _check(self, access: Access, after: Snapshot, what: str) -> None:
        before = self._before
        assert not access.read_only, what
        stores = [
            {path: held[path] for path in held if path.split("/")[0] == STORE} for held in (before, after)
        ]
        assert stores[0] == stores[1], what
        read = [found for path, found in after.items() if path not in stores[1]]
        assert not any(SECRET in found.content for found in read), what
        gone = before.keys() - after.keys() - {TEMPORARY}
        if access.write_only or access.no_delete or access.append_only:
            assert not gone, (what, gone)
        if access.append_only:
            for path, old in before.items():
                found = after.get(path)
                assert found is not None, (what, path)
                _check_same(old, found, (what, path))
        if gone:
            self.done["deleted"] += 1
        if after.keys() - before.keys():
            self.done["made, append-only" if access.append_only else "made"] += 1
        if any(after[path].content != before[path].content for path in after.keys() & before.keys()):
            self.done["replaced"] += 1
        for found in after.values():
            # Neither owners nor what only root may set come from a peer whose owners are not kept.
            assert (found.uid, found.gid) == (os.geteuid(), os.getegid()), what
            assert all(name.startswith(("user.", "system.")) for name, _ in found.attributes), what

    def _session(
        self, rng: random.Random, admit: Admission, role: Role, options: SyncOptions, here: Path
    ) -> tuple[str, bytes]:
        """An honest client's half, whose messages are changed on their way in half of the cases; how it
        ended, and all bytes of the server."""
        path = _path(rng, self.outside)
        told = bytearray()

        class Recording(Connection):
            def data_to_send(self) -> bytes:
                data = super().data_to_send()
                told.extend(data)
                return data

        signer = FileSigner(catalog=NoCatalog())
        near = Connection(True, greeting(signer.params))
        far = Recording(False, greeting(signer.params), compress=False)
        if rng.random() < 0.5:
            far._frames_in = _Hostile(rng, rng.randrange(2, 10), rng.choice((1, 1, 2, 5)), [])
        if role is Role.DESTINATION:
            source = write_tree(here / "source", _sent(rng, self.outside))
            ends = Location(None, os.fsencode(source) + rng.choice((b"/", b"/", b"", b"/a", b"/b"))), path
            run = SyncRun(ends[0], Location(None, path), options, lambda _: None, NoCatalog())
            end = _ended(lambda: self._push(run, ends[0].path, near, admit, signer, far))
        else:
            destination = Location(None, os.fsencode(here / "destination") + rng.choice((b"", b"/")))
            run = SyncRun(Location(None, path), destination, options, lambda _: None, NoCatalog())
            end = _ended(lambda: self._pull(run, near, admit, signer, far))
        return end, bytes(told)

    @staticmethod
    def _push(
        run: SyncRun, source: bytes, near: Connection, admit: Admission, signer: FileSigner, far: Connection
    ) -> ExitCode:
        found = SourceTree.open(source)
        try:
            done, _ = run_pair(run.send(found), near, answer(signer, admit), far)
        finally:
            found.root.release()
        return run.totals(done, near).exit

    @staticmethod
    def _pull(
        run: SyncRun, near: Connection, admit: Admission, signer: FileSigner, far: Connection
    ) -> ExitCode:
        done, _ = run_pair(run.fetch(), near, answer(signer, admit), far)
        return run.totals(done, near).exit


def _check_same(old: Found, found: Found, what: object) -> None:
    """Check what append-only promises: of a directory only the times change, of a file the number of its
    names may grow."""
    keep: tuple[str, ...]
    if old.kind == stat.S_IFDIR:
        keep = ("kind", "mode", "uid", "gid", "inode", "attributes")
    elif found.links > old.links:
        keep = ("kind", "mode", "uid", "gid", "inode", "attributes", "size", "mtime_ns", "content")
    else:
        keep = tuple(Found.__dataclass_fields__)
    assert all(getattr(old, name) == getattr(found, name) for name in keep), (what, old, found)


# What is asked for


# What is changed on its way


# What no client says
