"""A real source whose answers are replaced on their way out, and the cost of its lies for the destination."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rdc.protocol.connection import Received
from rdc.protocol.messages import Message
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source.conversation import Source

__all__ = ["Written", "answering", "disk_bytes"]


def answering(monkeypatch: pytest.MonkeyPatch, lie: Callable[[Message], Sequence[Message]]) -> None:
    """Make the source send, in place of each answer, what `lie` makes of it."""
    serve = Source._serve

    def lying(self: Source, received: Received) -> Conversation[None]:
        honest: Any = serve(self, received)
        reply: object = None
        while True:
            try:
                command = honest.send(reply)
            except StopIteration:
                return
            reply = None
            if isinstance(command, Send):
                for message in lie(command.message):
                    yield Send(message, command.round)
            else:
                reply = yield command

    monkeypatch.setattr(Source, "_serve", lying)


@dataclass
class Written:
    """The bytes written by Python's calls, all files together."""

    bytes: int = 0

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> Written:
        pwrite, copy = os.pwrite, os.copy_file_range

        def counted_pwrite(fd: int, data: bytes | memoryview, offset: int) -> int:
            count = pwrite(fd, data, offset)
            self.bytes += count
            return count

        def counted_copy(source: int, target: int, size: int, **more: Any) -> int:
            count = copy(source, target, size, **more)
            self.bytes += count
            return count

        monkeypatch.setattr(os, "pwrite", counted_pwrite)
        monkeypatch.setattr(os, "copy_file_range", counted_copy)
        return self


def disk_bytes(place: Path) -> int:
    """Return the bytes that all files below `place` take on disk, leftovers included."""
    found = [os.path.join(at, name) for at, _, names in os.walk(place) for name in names]
    return sum(os.lstat(path).st_blocks * 512 for path in found)
