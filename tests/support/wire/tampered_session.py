"""Sessions in which the messages that one end gets are not those that the other sent.

Frames are changed behind the blocks, where compression would hide every change: lost, repeated, exchanged, of
another kind, and with other values in their fields. Both ends are in one thread, so that a seed says all.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgpack

from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Open, Role, decode
from rdc.protocol.wire.fields import decode_varint, encode_varint
from rdc.protocol.wire.stream import Frame, FrameReader
from tests.support.running import paired_sync
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.programs import functions, linked
from tests.support.trees.old_or_new import worth_keeping
from tests.support.trees.trees import File, Link, Tree, describe, litter, read_tree, tree, write_tree

__all__ = ["SCENES", "Scene", "Tampered", "Tampering"]

ATTEMPT_SECONDS = 20
"""Seconds of processor time: a session of a scene takes half a second."""
GROWTH_KB = 150_000
"""The memory that an attempt may take, both ends together: a session as it should be takes a third."""

ODD = (0, 1, 2, 3, 7, 63, 64, 255, 256, 1023, 1024, 4096, 16_384, 65_535, 65_536, 1 << 20, (1 << 31) - 1,
       (1 << 32) - 1, 1 << 32, (1 << 63) - 1)  # fmt: skip

WORDS = [b"%x" % (i * 2654435761 % 99991) for i in range(3000)]


def _text(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    return b" ".join(rng.choices(WORDS, k=size // 4))[:size]


def _noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def _edited(content: bytes, seed: int) -> bytes:
    rng = random.Random(seed)
    for _ in range(3):
        at = rng.randrange(len(content) or 1)
        content = content[:at] + b"edit%d" % rng.randrange(99) + content[at + rng.choice((0, 4, 40)) :]
    return content


@dataclass(frozen=True, slots=True)
class Scene:
    """Two trees, what is asked for, and names of one file at the source."""

    wanted: Tree
    held: Tree
    options: SyncOptions
    linked: tuple[str, ...] = ()


def _many() -> Scene:
    """Make a scene that is sent by manifest: many small files, some of which changed and some moved."""
    old = {f"d{row % 9}/f{row:03}": _text(row, 300 + 40 * row) for row in range(260)}
    new = {name: _edited(text, row) if row % 5 == 0 else text for row, (name, text) in enumerate(old.items())}
    for row in range(0, 24, 3):
        new[f"moved/{row}"] = new.pop(f"d{row % 9}/f{row:03}")
    new["kin"] = _edited(new.pop("d7/f250"), 7) + b"more"
    new["touched"] = old["touched"] = _text(700, 4_000)
    held = {
        name: File(text, 0o600, 5) if row % 5 == 0 or row % 3 == 0 else text
        for row, (name, text) in enumerate(old.items())
    }
    wanted, held_tree = tree({**new, "link": Link(b"kin")}), tree({**held, "out": Link(b"../outside")})
    return Scene(wanted, held_tree, SyncOptions(delete=True, fsync=False))


def _large() -> Scene:
    """Make a scene that is sent by descent: text, noise, code with moved targets, and a table of
    relocations."""
    program = list(enumerate(functions(1, 1_800)))
    table = [
        b"%b%b" % ((4096 + 24 * row).to_bytes(8, "little"), bytes((8,)) + bytes(15)) for row in range(4_000)
    ]
    text, noise = _text(1, 300_000), _noise(1, 200_000)
    old = {
        "code": linked(program),
        "table": b"".join(table),
        "text": text,
        "noise": noise,
        "one": _text(9, 30_000),
    }
    new = {
        "code": linked(program[:400] + list(enumerate(functions(2, 6), 5_000)) + program[400:]),
        "table": b"".join([*table[:900], _noise(3, 24), *table[900:]]),
        "text": _edited(text, 1),
        "noise": noise[:90_000] + b"edit" + noise[90_000:180_000],
        "one": _edited(_text(9, 30_000), 9),
        "new code": linked(list(enumerate(functions(4, 900)))),
        "new table": b"".join(table[:2_000]),
        "zeros": bytes(300_000),
    }
    held = {name: File(content, 0o644, 5) for name, content in old.items()}
    return Scene(tree(new), tree(held), SyncOptions(fsync=False))


def _listed() -> Scene:
    """Make a scene that is sent by listing: all files compared by content, names of one file, new files
    together in one message."""
    old = {f"f{row}": _text(row, 2_000) for row in range(40)}
    new = {name: _edited(text, row) if row % 4 == 0 else text for row, (name, text) in enumerate(old.items())}
    wanted = tree({**new, **{f"n/{row}": _noise(row, 900) for row in range(20)}, "a": _text(50, 50_000)})
    options = SyncOptions(fsync=False, checksum=True, hard_links=True, delete=True, xattrs=True, acls=True)
    return Scene(wanted, tree(old), options, ("a", "n/b", "n/c"))


def _whole() -> Scene:
    """Make a scene over a fast line: every changed file is sent whole."""
    scene = _many()
    return replace(scene, options=SyncOptions(delete=True, fsync=False, line=1 << 30))


SCENES: tuple[Callable[[], Scene], ...] = (_many, _large, _listed, _whole)


# What goes wrong


class Tampered(FrameReader):
    """Gives other frames than came, from number `at` of them on."""

    def __init__(self, rng: random.Random, at: int, count: int, seen: list[Frame]) -> None:
        super().__init__()
        self._rng = rng
        self._at = at
        self._left = count
        self._seen = seen
        self._given: list[Frame] = []

    def next(self) -> Frame | None:
        if self._given:
            return self._given.pop(0)
        frame = super().next()
        if frame is None:
            return None
        frame = Frame(frame.kind, frame.round, bytes(frame.payload), frame.size)
        self._seen.append(frame)
        if not self._left or len(self._seen) <= self._at or frame.kind == Open.kind:
            return frame
        self._left -= 1
        self._at += self._rng.randrange(4)
        # Who dials says which directory is written to: that is no attack, and would hit this machine's own.
        self._given = [given for given in self._instead(frame) if given.kind != Open.kind]
        return self.next()

    def _instead(self, frame: Frame) -> list[Frame]:
        rng = self._rng
        match rng.randrange(20):
            case 0:
                return []
            case 1:
                return [frame, frame]
            case 2:
                return [frame, rng.choice(self._seen)]
            case 3:
                return [rng.choice(self._seen), frame]
            case 4:
                following = super().next()
                return [frame] if following is None else [_owned(following), frame]
            case 5:
                return [Frame(rng.randrange(64), frame.round, frame.payload, frame.size)]
            case 6:
                return [Frame(frame.kind, rng.choice((0, frame.round + 1, *ODD)), frame.payload, frame.size)]
            case 7 | 8 | 9:
                payload = _bytes(rng, bytes(frame.payload))
            case _:
                payload = _fields(rng, frame)
        return [Frame(frame.kind, frame.round, payload, frame.size)]


def _owned(frame: Frame) -> Frame:
    return Frame(frame.kind, frame.round, bytes(frame.payload), frame.size)


def _fields(rng: random.Random, frame: Frame) -> bytes:
    """Return the payload with another value in one field, valid or not."""
    payload, head, content = bytes(frame.payload), b"", b""
    try:
        values = msgpack.unpackb(payload, use_list=True)
    except ValueError:  # the length of the array is before it, and content behind it
        length = decode_varint(payload, 0, 1 << 20, "a length")
        if length is None:
            return _bytes(rng, payload)
        size, start = length
        head, content = payload[start : start + size], payload[start + size :]
        if rng.random() < 0.3:
            return encode_varint(size) + head + _bytes(rng, content)
        values = msgpack.unpackb(head, use_list=True)
    if not isinstance(values, list) or not values:
        return _bytes(rng, payload)
    at = rng.randrange(len(values))
    values[at] = _value(rng, values[at])
    packed: bytes = msgpack.packb(values, use_bin_type=True)
    return encode_varint(len(packed)) + packed + content if head else packed


def _value(rng: random.Random, value: object) -> object:
    match value:
        case bool():
            return rng.choice((not value, None, 2))
        case int():
            return rng.choice(
                (value + 1, max(0, value - 1), value * 2, rng.choice(ODD), rng.choice(ODD), None)
            )
        case None:
            return rng.choice(ODD)
        case bytes():
            return _column(rng, value) if rng.random() < 0.6 else _bytes(rng, value)
        case str():
            return value + rng.choice(("\0", "\x1b[2J", "x" * 5_000, "é"))
        case list() if value:
            at = rng.randrange(len(value))
            return [*value[:at], _value(rng, value[at]), *value[at + 1 :]]
    return rng.choice((None, [], b"", 0))


def _column(rng: random.Random, data: bytes) -> bytes:
    """Return a column of packed integers with one of them changed, one more, or one less."""
    width = data[0] if data else 0
    if width not in {1, 2, 4, 8} or (len(data) - 1) % width:
        return _bytes(rng, data)
    items = [data[place : place + width] for place in range(1, len(data), width)]
    at = rng.randrange(len(items) or 1)
    odd = (rng.choice(ODD) % (1 << 8 * width)).to_bytes(width, "little")
    match rng.randrange(4):
        case 0:
            items[at : at + 1] = [odd]
        case 1:
            items.insert(at, odd)
        case 2:
            del items[at : at + 1]
        case 3:
            items[at:at] = items[at : at + 1] * rng.choice((1, 2, 20_000))
    return data[:1] + b"".join(items)


def _bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    at, count = rng.randrange(len(data) or 1), rng.choice((1, 1, 2, 4, 16, 300))
    match rng.randrange(6):
        case 0 if data:
            changed[at] ^= 1 << rng.randrange(8)
        case 1:
            changed[at : at + count] = rng.randbytes(count)
        case 2:
            del changed[at : at + count]
        case 3:
            changed[at:at] = changed[at : at + count]
        case 4:
            changed[at : at + count] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * count
        case _:
            del changed[at:]
    return bytes(changed)


# Attempts


@dataclass
class Tampering:
    """Sessions of one scene, again and again."""

    place: Path
    scene: Scene
    kinds: Counter[str] = field(default_factory=Counter)
    """Messages that were tampered with first."""
    ends: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.place.mkdir()
        self._source = write_tree(self.place / "source", self.scene.wanted)
        first, *others = self.scene.linked or ("",)
        for name in others:
            os.link(self._source / first, self._source / name)
        if others:
            os.utime(self._source / "n", ns=(10**18, 10**18))
            for number in range(30):
                os.setxattr(self._source / f"f{number}", f"user.{number}", b"v" * number * number)
        self._held = write_tree(self.place / "held", self.scene.held)
        self._outside = write_tree(self.place / "outside", tree({"secret": b"secret"}))
        self._before = read_tree(self._source), read_tree(self._outside)
        self._contents = {
            node.content for found in (self._before[0], self.scene.held) for node in found.values()
            if isinstance(node, File)
        }  # fmt: skip
        self._usual: dict[tuple[Role, Role], dict[int, list[int]]] = {}
        """Where frames of each kind come, to whom, when nothing is wrong."""

    def attempt(self, seed: int) -> ExitCode | None:
        """One session; the exit code it ended with, None where both ends wait for what was lost.

        Raises AssertionError where an error was none of rdc's own, a content came out wrong, something else
        was touched, or it took too much.
        """
        rng = random.Random(seed)
        dialler, victim = rng.choice(list(Role)), rng.choice(list(Role))
        usual = self._usual.setdefault((dialler, victim), {})
        if not usual:
            frames, _ = self._session(rng, dialler, victim, 0, 0)
            assert describe(self._before[0], read_tree(self.place / "destination")) == []
            for number, frame in enumerate(frames):
                usual.setdefault(frame.kind, []).append(number)
        at = rng.choice(usual[rng.choice(sorted(usual))])
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now's
        began, held = time.process_time(), _kilobytes("VmRSS")
        _, end = self._session(rng, dialler, victim, at, rng.choice((1, 1, 1, 2, 5)))
        self.ends["wait" if end is None else end.name] += 1
        spent, grown = time.process_time() - began, _kilobytes("VmHWM") - held
        assert spent < ATTEMPT_SECONDS, f"{spent} seconds"
        assert grown < GROWTH_KB, f"{grown} KiB more"
        self._check()
        return end

    def _session(
        self, rng: random.Random, dialler: Role, victim: Role, at: int, count: int
    ) -> tuple[list[Frame], ExitCode | None]:
        destination = self.place / "destination"
        shutil.rmtree(destination, ignore_errors=True)
        shutil.copytree(self._held, destination, symlinks=True)
        seen: list[Frame] = []

        class Listening(Connection):
            def __init__(self, dials: bool, *rest: Any, **named: Any) -> None:
                super().__init__(dials, *rest, **named)
                if dials is (victim is dialler):
                    self._frames_in = Tampered(rng, at, count, seen)

        end: ExitCode | None = None
        try:
            with patch.object(paired_sync, "Connection", Listening):
                run = sync_in_turns(self._source, destination, self.scene.options, dialler=dialler)
            end = run.done.exit
        except RdcError as error:
            assert "internal" not in str(error), error
            assert str(error).isprintable(), error
            end = error.code
        except RuntimeError as error:
            if "wait for the other" not in str(error):
                raise
        for frame in seen[at : at + 1]:
            with suppress(RdcError):
                self.kinds[decode(frame.kind, frame.payload).name] += 1
        return seen, end

    def _check(self) -> None:
        assert (read_tree(self._source), read_tree(self._outside)) == self._before
        names = sorted(os.listdir(self.place))
        assert names == ["destination", "held", "outside", "source"], names
        found = read_tree(self.place / "destination")
        for path in litter(found):
            assert worth_keeping(found.pop(path)), path
        for path, node in found.items():
            assert not isinstance(node, File) or node.content in self._contents, (path, node)


def _kilobytes(what: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0])
