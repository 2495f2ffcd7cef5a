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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, Metadata
from rdc.model.location import Location
from rdc.model.preserved import Preserved
from rdc.model.sync import FilterRule, RuleAction, SyncOptions
from rdc.protocol.messages.registry import (
    Changed,
    Describe,
    HardLinks,
    ListingEnd,
    ListingPart,
    Manifest,
    Message,
    Open,
    Renamed,
    Role,
    Start,
    Turn,
    TurnEnd,
    Watch,
    decode,
    encode,
)
from rdc.protocol.rules.connection import Connection, Received
from rdc.protocol.wire.frames import Frame
from rdc.records import replace
from rdc.session.access import Access
from rdc.session.runtime.commands import Idle, Receive, Send
from rdc.session.serve import Admission, answer, greeting
from rdc.session.served_directory import KEY_TITLE, admission
from rdc.session.sync import _Run
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.manifest import Entry
from tests.support.running.run_pair import run_pair
from tests.support.trees.manifests import entry, listing
from tests.support.trees.trees import LONG_AGO, File, Link, Tree, tree, write_tree
from tests.support.wire.tampered_session import Tampered

__all__ = ["ACCESSES", "HostileRequests", "Snapshot", "snapshot"]

SECRET = b"secret of the account " + bytes(range(200, 240))
"""In each file outside of the directory."""
HELD = b"secret of the directory " + bytes(range(180, 220))
"""In each file of the directory that no request brought."""

ACCESSES = {
    "all": Access(KEY_TITLE),
    "read-only": Access(KEY_TITLE, read_only=True),
    "write-only": Access(KEY_TITLE, write_only=True),
    "no-delete": Access(KEY_TITLE, no_delete=True),
    "append-only": Access(KEY_TITLE, append_only=True),
    "write-only append-only": Access(KEY_TITLE, write_only=True, append_only=True),
}

TEMPORARY = ".rdc-0123456789abcdef.tmp"
NAMES = ("a", "b", "c", "d", "out", "abs", "sec", "deep", "new", TEMPORARY, ".ssh")


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
        assert not any(SECRET in found.content for found in after.values()), what
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
            run = _Run(ends[0], Location(None, path), options, lambda _: None, NoCatalog())
            end = _ended(lambda: self._push(run, ends[0].path, near, admit, signer, far))
        else:
            destination = Location(None, os.fsencode(here / "destination") + rng.choice((b"", b"/")))
            run = _Run(Location(None, path), destination, options, lambda _: None, NoCatalog())
            end = _ended(lambda: self._pull(run, near, admit, signer, far))
        return end, bytes(told)

    @staticmethod
    def _push(
        run: _Run, source: bytes, near: Connection, admit: Admission, signer: FileSigner, far: Connection
    ) -> ExitCode:
        found = SourceTree.open(source)
        try:
            done, _ = run_pair(run._send(found), near, answer(signer, admit), far)
        finally:
            found.root.release()
        return run._report(done, near).exit

    @staticmethod
    def _pull(run: _Run, near: Connection, admit: Admission, signer: FileSigner, far: Connection) -> ExitCode:
        done, _ = run_pair(run._fetch(), near, answer(signer, admit), far)
        return run._report(done, near).exit


def _check_same(old: Found, found: Found, what: object) -> None:
    """As append-only promises: of a directory the times move, of a file the count of its names may grow."""
    keep: tuple[str, ...]
    if old.kind == stat.S_IFDIR:
        keep = ("kind", "mode", "uid", "gid", "inode", "attributes")
    elif found.links > old.links:
        keep = ("kind", "mode", "uid", "gid", "inode", "attributes", "size", "mtime_ns", "content")
    else:
        keep = tuple(Found.__dataclass_fields__)
    assert all(getattr(old, name) == getattr(found, name) for name in keep), (what, old, found)


def _ended(session: Any) -> str:
    try:
        return ExitCode(session()).name
    except RdcError as error:
        assert "internal" not in str(error), error
        return error.code.name
    except RuntimeError as error:
        if "wait for the other" not in str(error):
            raise
        return "WAIT"


# What is asked for


def _path(rng: random.Random, outside: Path) -> bytes:
    there = os.fsencode(outside)
    steps = (b"a", b"b", b"c", b"deep", b"up", b"out", b"abs", b"sec", b"loop", b"..", b".", b"", b"new",
             b"outside", b"secret", b"keys", b"top", TEMPORARY.encode(), b".ssh", b"\xff")  # fmt: skip
    fixed = (
        b"", b"/", b".", b"./", b"//", b"b", b"b/", b"c/deep", b"new", b"new/", there, there + b"/",
        there + b"/secret", b"../outside", b"../outside/secret", b"b/../../outside/", b"out",
        b"out/", b"out/secret", b"abs/", b"abs/keys/authorized", b"sec", b"sec/", b"deep/up/outside/",
        b"deep/up/top/", b"deep/loop/", b"~/x", b".ssh/authorized_keys", b"a/", b"a/x", b"..", b"new/../..",
    )  # fmt: skip
    if rng.random() < 0.5:
        return rng.choice((b"", b"/", b".", b"b/", b"new/", b"new"))
    if rng.random() < 0.6:
        return rng.choice(fixed)
    return rng.choice((b"", b"/")) + b"/".join(rng.choices(steps, k=rng.randrange(1, 6)))


def _options(rng: random.Random) -> SyncOptions:
    def some(chance: float = 0.25) -> bool:
        return rng.random() < chance

    actions, patterns = list(RuleAction), (b"a", b"*", b"/b/", b"out", b"**/x", b"..")
    return SyncOptions(
        checksum=some(),
        delete=some(0.4),
        delete_excluded=some(),
        max_delete=rng.choice((None, None, None, 1, 100)),
        force_empty=some(),
        dry_run=some(0.08),
        rules=tuple(
            FilterRule(rng.choice(actions), rng.choice(patterns)) for _ in range(rng.choice((0, 0, 0, 2)))
        ),
        fsync=False,
        items=some(0.5),
        compress=rng.choice((None, False, False)),
        owner=rng.choice((*[None] * 18, False, True)),
        update=some(0.1),
        existing=some(0.1),
        ignore_existing=some(0.1),
        size_only=some(0.1),
        min_size=rng.choice((0, 0, 0, 5)),
        max_size=rng.choice((None, None, None, 100)),
        hard_links=some(),
        acls=some(),
        xattrs=some(),
        sparse=some(),
        one_file_system=some(0.1),
    )


def _sent(rng: random.Random, outside: Path) -> Tree:
    """A client's tree: names of what is there, with another kind, content or metadata, and what leads out."""
    found: dict[str, File | Link | bytes] = {}
    for name in rng.sample(NAMES, rng.randrange(0, 8)):
        match rng.randrange(6):
            case 0:
                target = rng.choice((b"..", b"../outside", os.fsencode(outside / "secret"), b"a"))
                found[name] = Link(target)
            case 1 | 2:
                mode = rng.choice((0o644, 0o600, 0o4755, 0o6777, 0o000))
                content = rng.choice((b"evil", HELD * 3 + b"a", b"", b"e" * 70_000))
                found[name] = File(content, mode, rng.choice((1, 10**18)))
            case 3:
                below = rng.choice(("secret", "one", "two", "x"))
                found[f"{name}/{below}"] = File(rng.choice((b"evil", HELD * 3 + b"one")), 0o644, 10**18)
            case 4:
                found[f"{name}/keys/authorized"] = b"evil"
                found[f"{name}/up/top/a"] = b"evil"
            case _:
                found[f"{name}/deep/er"] = File(HELD * 3 + b"er", 0o666)
    return tree(found)


# What is changed on its way


class _Hostile(Tampered):
    """As its base, and with paths that lead out in the places of names and paths."""

    def _instead(self, frame: Frame) -> list[Frame]:
        if self._rng.random() < 0.5:
            return super()._instead(frame)
        with suppress(ValueError, TypeError):
            values = msgpack.unpackb(bytes(frame.payload), use_list=True)
            payload = msgpack.packb(_led_out(self._rng, values), use_bin_type=True)
            return [Frame(frame.kind, frame.round, payload, frame.size)]
        return super()._instead(frame)


LEADING_OUT = (
    b"..", b"../outside", b"../outside/secret", b"out", b"out/secret", b"out/x", b"sec", b"abs/one",
    b"deep/up/outside/one", b"b/../../outside/one", b"out//x", b"a", b"b/one", b".", b"", b"x\0../y\0",
    b"b/twin", TEMPORARY.encode(),
)  # fmt: skip


def _led_out(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list):
        return [_led_out(rng, one) if rng.random() < 0.7 else one for one in value]
    if not isinstance(value, bytes):
        return value
    if b"\0" in value and rng.random() < 0.7:  # names, each followed by NUL
        names = value.split(b"\0")[:-1]
        if names:
            names[rng.randrange(len(names))] = rng.choice(LEADING_OUT)
        return b"".join(name + b"\0" for name in names)
    return rng.choice(LEADING_OUT)


# What no client says


def _speak(rng: random.Random, admit: Admission, options: SyncOptions) -> str:
    """A source's messages in an order of its own, each as it comes out of the codec; no connection looks
    whether it is time for them. How it ended."""
    path = rng.choice((b"", b"", b"", b"b", b"b/", b"new", b"out", b"..", b"c/deep/"))
    messages: list[Message] = [Open(Role.DESTINATION, path, bytes(16), options)]
    if rng.random() < 0.8:
        messages.append(Watch(rng.random() < 0.1, bytes(16)))
    only = rng.choice((b"", b"", b"", b"", b"a", b"out", b"sec"))
    kind = Kind.DIRECTORY if not only else rng.choice((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))
    messages.append(Start(only, kind, _metadata(rng), Preserved(owner=True)))
    # An empty tree is soon compared, and the turns come.
    listed = _told(rng, options) if rng.random() < 0.3 else _EMPTY
    turns: list[Message] = []
    for _ in range(rng.randrange(5)):
        turns += [Turn(False), *_turn(rng)]
    if rng.random() < 0.2:
        turns += [Turn(True), messages[-1], *listed]
    conversation = answer(FileSigner(catalog=NoCatalog()), admit)
    return _ended(lambda: _heard(conversation, messages, listed, turns))


_EMPTY: list[Message] = [ListingPart(0, b"", 0, True, EMPTY_LISTING), ListingEnd(1, 0, 0, 0, 0)]


def _heard(
    conversation: Any, opening: list[Message], listed: list[Message], turns: list[Message]
) -> ExitCode:
    """Says all that to an answering side, with a manifest before the listing where it wants one."""
    waiting = opening[:]
    described = False
    try:
        command = next(conversation)
        while True:
            given: Received | None = None
            if isinstance(command, Send) and isinstance(command.message, Describe):
                if described or command.message.whole:
                    waiting += listed + turns
                    turns = []
                else:
                    waiting.append(Manifest(bytes(32), 3, 0, 0, 0, Preserved(owner=True)))
                described = True
            if isinstance(command, Send):
                encode(command.message)
            elif isinstance(command, (Receive, Idle)):
                if waiting:
                    given = _coded(waiting.pop(0))
                elif isinstance(command, Idle) or command.wait:
                    raise ProtocolError("the end of what was to be said")
            command = conversation.send(given)
    except StopIteration:
        return ExitCode.OK
    except ProtocolError as error:
        with suppress(StopIteration, ProtocolError):
            conversation.throw(error)
        raise
    finally:
        conversation.close()


def _coded(message: Message) -> Received:
    try:
        return Received(decode(message.kind, encode(message)), 0)
    except ValueError as error:
        raise ProtocolError(str(error)) from error


def _metadata(rng: random.Random) -> Metadata:
    mtime = rng.choice((LONG_AGO, LONG_AGO, 10**18))
    return Metadata(rng.choice((0o755, 0o777, 0o4777, 0)), mtime, 0, rng.choice((0, 4242)))


def _told(rng: random.Random, options: SyncOptions) -> list[Message]:
    """A tree of links and directories, which need no content, and of files that may be there."""
    found = _listing(rng)
    messages: list[Message] = []
    if options.hard_links and rng.random() < 0.5:
        messages.append(HardLinks((1,), (0,)))
    messages.append(ListingPart(0, b"", 0, True, found))
    directories = [name for row, name in enumerate(found.names) if found.kinds[row] == Kind.DIRECTORY]
    count = len(found)
    for number, name in enumerate(directories, 1):
        below = _listing(rng)
        messages.append(ListingPart(number, name, count, True, below))
        count += len(below)
    return [*messages, ListingEnd(1 + len(directories), count, 0, 0, 0)]


def _listing(rng: random.Random) -> Listing:
    names = sorted({name.encode() for name in rng.sample(NAMES, rng.randrange(1, 5))} | {b"up"})
    return listing([_entry(rng, name) for name in names])


def _entry(rng: random.Random, name: bytes) -> Entry:
    kind = rng.choices((Kind.DIRECTORY, Kind.SYMLINK, Kind.FILE), (6, 4, 1))[0]
    if kind is Kind.SYMLINK:
        return entry(name, kind, target=b"../outside")
    return entry(name, kind, mode=rng.choice((0o755, 0o4777)), mtime_ns=LONG_AGO)


def _turn(rng: random.Random) -> list[Message]:
    there = (b"a", b"b", b"b/one", b"b/two", b"c", b"c/deep", b"c/deep/er", b"d", b"deep", b"deep/file")
    odd = (b"out", b"out/secret", b"abs/one", b"sec", b"deep/up", b"deep/up/outside", b"new/x", b"out/moved",
           b"../outside/x", TEMPORARY.encode())  # fmt: skip
    messages: list[Message] = []
    for _ in range(rng.randrange(1, 5)):
        old = rng.choice(there if rng.random() < 0.8 else odd)
        if rng.random() < 0.5:
            new = rng.choice((b"new", b"b/new", b"e", b"out/e") if rng.random() < 0.8 else odd)
            kind = rng.choice((Kind.FILE, Kind.DIRECTORY))
            size = len(HELD * 3) + len(old.rpartition(b"/")[2]) if kind is Kind.FILE else 0
            messages.append(Renamed(old, new, kind, size, replace(_metadata(rng), mtime_ns=LONG_AGO)))
        else:
            gone = rng.choice((b"", b"a\0", b"one\0two\0", b"secret\0"))
            found = rng.choice((EMPTY_LISTING, _listing(rng)))
            path = rng.choice((b"", old))
            messages.append(Changed(path, _metadata(rng), 0, gone, found, ()))
    return [*messages, TurnEnd(9, 5, 0)]
