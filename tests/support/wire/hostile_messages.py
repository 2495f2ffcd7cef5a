"""Messages that a hostile peer sends: paths that lead out, options and changes of any kind, in any state."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.lean.records import replace
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, Metadata
from rdc.model.options import Alternates, AlternateUse, Backup
from rdc.model.preserved import Preserved
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide, RuleSyntax
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Received
from rdc.protocol.messages import (
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
from rdc.protocol.wire.stream import Frame
from rdc.session.runtime.commands import Idle, Receive, Send
from rdc.session.serve import Admission, answer
from rdc.tree.manifest import Entry
from tests.support.trees.manifests import entry, listing
from tests.support.trees.trees import LONG_AGO, File, Link, Tree, tree
from tests.support.wire.tampered_session import Tampered

HELD = b"secret of the directory " + bytes(range(180, 220))
"""In each file of the directory that no request brought."""


TEMPORARY = ".rdc-0123456789abcdef.tmp"


STORE = ".rdc-undo"
"""The directory of what syncs keep to be undone: no peer reads it or writes in it, by whatever way."""


NAMES = ("a", "b", "c", "d", "out", "abs", "sec", "deep", "new", TEMPORARY, ".ssh", "one", "store", STORE)


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


def _path(rng: random.Random, outside: Path) -> bytes:
    there = os.fsencode(outside)
    steps = (b"a", b"b", b"c", b"deep", b"up", b"out", b"abs", b"sec", b"loop", b"..", b".", b"", b"new",
             b"outside", b"secret", b"keys", b"top", TEMPORARY.encode(), b".ssh", b"\xff", b".rdc-undo",
             b".Rdc-UNDO", b"store", b"kept", b"1")  # fmt: skip
    fixed = (
        b"", b"/", b".", b"./", b"//", b"b", b"b/", b"c/deep", b"new", b"new/", there, there + b"/",
        there + b"/secret", b"../outside", b"../outside/secret", b"b/../../outside/", b"out",
        b"out/", b"out/secret", b"abs/", b"abs/keys/authorized", b"sec", b"sec/", b"deep/up/outside/",
        b".rdc-undo/", b".rdc-undo/1/kept/", b"store/", b"store", b"kept/", b"store/1/kept/",
        b"deep/up/top/", b"deep/loop/", b"~/x", b".ssh/authorized_keys", b"a/", b"a/x", b"..", b"new/../..",
    )  # fmt: skip
    if rng.random() < 0.5:
        return rng.choice((b"", b"/", b".", b"b/", b"new/", b"new"))
    if rng.random() < 0.6:
        return rng.choice(fixed)
    return rng.choice((b"", b"/")) + b"/".join(rng.choices(steps, k=rng.randrange(1, 6)))


def _rule(rng: random.Random, action: RuleAction, pattern: bytes) -> FilterRule | DirectoryRules:
    """A rule of any kind; every second one is plain."""
    kind = rng.randrange(6)
    if kind == 0:
        name = rng.choice((b"a", b"out", b".rules", b"CACHEDIR.TAG"))
        return DirectoryRules(name, rng.choice(list(RuleSyntax)), above=rng.random() < 0.5)
    if kind < 3:
        flags = [rng.random() < 0.3 for _ in range(3)]
        return FilterRule(action, pattern, RuleModifiers(rng.choice(list(RuleSide)), *flags))
    return FilterRule(action, pattern)


def _named(rng: random.Random) -> bytes:
    """A directory that an option names."""
    names = (
        b"b",
        b"c/deep",
        b".rdc-undo",
        b".RDC-undo/1/kept",
        b"store",
        b"kept",
        b"out",
        b"new",
        b"deep/up",
    )
    return rng.choice((b"", b"", b"/", b"../", b"b/../")) + rng.choice(names)


def _naming(rng: random.Random) -> dict[str, Any]:
    """Options that name a directory, or have links lead to one."""
    match rng.randrange(12):
        case 0 | 1:
            return {"partial_dir": rng.choice((b"b", b"c", b"new", b".rdc-undo", _named(rng)))}
        case 2:
            return {"temp_dir": _named(rng)}
        case 3:
            return {"backup": Backup(rng.choice((b"~", b"undo", b"")), _named(rng))}
        case 4:
            return {"backup": Backup(rng.choice((b"~", b"undo", b".tmp")))}
        case 5:
            return {"alternates": Alternates(rng.choice(list(AlternateUse)), (_named(rng),))}
        case 6 | 7:
            return {"keep_dirlinks": True}
        case 8:
            return {rng.choice(("copy_links", "copy_dirlinks", "copy_unsafe_links")): True}
    return {}


def _options(rng: random.Random) -> SyncOptions:
    def some(chance: float = 0.25) -> bool:
        return rng.random() < chance

    # Drawn apart: the other draws are those of each seed since there are these requests.
    apart = random.Random(rng.getstate()[1][0])
    ways = apart.choice(({"fewest_bytes": True}, {"line": 1000}, {"line": 1 << 30}, {}))
    actions, patterns = list(RuleAction), (b"a", b"*", b"/b/", b"out", b"**/x", b"..")
    return SyncOptions(
        checksum=some(),
        delete=some(0.4),
        delete_excluded=some(),
        max_delete=rng.choice((None, None, None, 1, 100)),
        force_empty=some(),
        dry_run=some(0.08),
        rules=tuple(
            _rule(rng, rng.choice(actions), rng.choice(patterns)) for _ in range(rng.choice((0, 0, 0, 2)))
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
        **ways,
        one_file_system=some(0.1),
        **_naming(rng),
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
                below = rng.choice(("secret", "one", "two", "x", "1/kept/0", "0"))
                found[f"{name}/{below}"] = File(rng.choice((b"evil", HELD * 3 + b"one")), 0o644, 10**18)
            case 4:
                found[f"{name}/keys/authorized"] = b"evil"
                found[f"{name}/up/top/a"] = b"evil"
            case _:
                found[f"{name}/deep/er"] = File(HELD * 3 + b"er", 0o666)
    return tree(found)


class _Hostile(Tampered):
    """Tampers as its base does, and also puts paths that lead out of the tree in place of names and paths."""

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
    b"b/twin", TEMPORARY.encode(), b".rdc-undo", b".RDC-UNDO", b"store", b"kept", b".rdc-undo/1/kept/0",
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
    """Send all these messages to an answering side, with a manifest before the listing where it wants one;
    return its exit code."""
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
