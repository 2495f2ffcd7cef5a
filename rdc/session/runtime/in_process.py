"""Runs both halves of a session in one process, each in a thread, without a byte stream.

Messages pass by reference. Messages without content are still encoded and decoded, so they are checked and
counted as on a wire; contents, and long lists of what the user chose, are counted by their lengths. Each
direction holds a bounded number of bytes before its sender waits, like the driver's queues.

Contents pass through memory, and both halves hash them. copy_file_range would save one and a half copies,
but its output would have to be read back for hashing, which costs more. Two hashes of a gigabyte take a
fifth of a second. Where blocks can be shared, the source reads a private clone of a long file, and the new
file begins as a clone of that (rdc.files.replace.staged_clones). Nothing is written then, and what both
halves have hashed is what the new file holds.
"""

from __future__ import annotations

import threading
from collections import deque

from rdc.errors import RdcError, StreamError
from rdc.limits.wire import INBOUND_BYTES
from rdc.progress import STOP_SECONDS, check_stop
from rdc.protocol.messages.registry import Data, FileBatch, Rules, Selected, decode, encode
from rdc.protocol.rules.connection import Received
from rdc.protocol.rules.dialect import DIALECT
from rdc.protocol.wire.added_options import rule_bytes
from rdc.protocol.wire.costs import cost_of, dearest_first
from rdc.protocol.wire.frames import frame_head
from rdc.session.runtime.commands import AskAgreement, Pace, Receive, Send
from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync_report import MessageCost
    from rdc.progress import StopSignal
    from rdc.protocol.messages.registry import Message
    from rdc.session.runtime.bandwidth import TokenBucket
    from rdc.session.runtime.commands import Command, Conversation

__all__ = ["InProcessLink"]

T = TypeVar("T")
V = TypeVar("V")

CONTENT_OVERHEAD = 16
"""Bytes that a message adds to its content on a wire: heads of block and frame, ordinal, length."""


def _size_of(message: Message) -> int | None:
    """The bytes of a message that passes by reference; None for one that is encoded."""
    if isinstance(message, Data | FileBatch):
        return len(message.payload) + CONTENT_OVERHEAD
    # These are as many as a user has, and were checked when they were read.
    if isinstance(message, Selected):
        return sum(map(len, message.names)) + len(message.names) + len(message.origin) + CONTENT_OVERHEAD
    if isinstance(message, Rules):
        return sum(map(rule_bytes, message.rules)) + CONTENT_OVERHEAD
    return None


class _Direction:
    """Messages in transit in one direction. The link's condition guards it."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Received, int]] = deque()
        self.queued = 0
        self.bytes = 0
        self.over = False
        self.bucket: TokenBucket | None = None


class InProcessLink(Generic[T]):
    """Runs `near` in the calling thread and `far` in a thread of its own."""

    def __init__(
        self, near: Conversation[T], far: Conversation[object], stop: StopSignal | None = None
    ) -> None:
        """`stop`: once it is set, both halves end with StoppedError at their next command."""
        self._stop = stop
        self._changed = threading.Condition()
        self._there = _Direction()
        self._back = _Direction()
        self._near = near
        self._far = far
        self._failure: BaseException | None = None
        self._costs_by_name: dict[str, list[int]] = {}
        self.max_round = 0

    @property
    def bytes_sent(self) -> int:
        """Bytes from near to far."""
        return self._there.bytes

    @property
    def bytes_received(self) -> int:
        """Bytes from far to near."""
        return self._back.bytes

    @property
    def costs(self) -> tuple[MessageCost, ...]:
        """Count and bytes of each kind of message, both directions, most bytes first."""
        counted = self._costs_by_name.items()
        return dearest_first(cost_of(name, count, size, size) for name, (count, size) in counted)

    def run(self) -> T:
        """Runs both conversations and returns the value of `near`. Raises the first error of either side."""
        thread = threading.Thread(target=self._run_far, name="rdc source")
        thread.start()
        try:
            return self._perform(self._near, self._there, self._back)
        except StreamError:
            # If the other half ended early, `_failure` has its reason, which was set before.
            if self._failure is not None:
                raise self._failure from None
            raise
        finally:
            self._end(self._there)
            thread.join()

    def _run_far(self) -> None:
        try:
            self._perform(self._far, self._back, self._there)
        except BaseException as error:  # noqa: BLE001 - raised again by run(), in the calling thread
            self._failure = error
        finally:
            self._end(self._back)

    def _end(self, outward: _Direction) -> None:
        with self._changed:
            outward.over = True
            self._changed.notify_all()

    def _perform(self, conversation: Conversation[V], outward: _Direction, inward: _Direction) -> V:
        try:
            command = next(conversation)
            while True:
                try:
                    answer = self._obey(command, outward, inward)
                except RdcError as error:
                    command = conversation.throw(error)
                else:
                    command = conversation.send(answer)
        except StopIteration as stop:
            value: V = stop.value
            return value
        finally:
            conversation.close()

    def _obey(self, command: Command, outward: _Direction, inward: _Direction) -> Received | None:
        check_stop(self._stop)
        if isinstance(command, Send):
            self._send(command.message, command.round, outward, inward)
        elif isinstance(command, Receive):
            return self._receive(inward, wait=command.wait)
        elif isinstance(command, AskAgreement):
            command.features = frozenset(DIALECT.features)
        elif isinstance(command, Pace):
            # No time limit: in one process, silence means work, or a file system that hangs both halves.
            outward.bucket = None
            if command.bandwidth:
                from rdc.session.runtime.bandwidth import TokenBucket

                outward.bucket = TokenBucket(command.bandwidth)
        return None

    def _wait(self) -> None:
        """Waits for a change. Raises StoppedError once the stop signal is set."""
        self._changed.wait(None if self._stop is None else STOP_SECONDS)
        check_stop(self._stop)

    def _send(self, message: Message, round_: int, outward: _Direction, inward: _Direction) -> None:
        size = _size_of(message)
        if size is None:
            payload = encode(message)
            size = len(frame_head(message.kind, round_, len(payload))) + len(payload)
            message = decode(message.kind, payload)
        with self._changed:
            while outward.queued > INBOUND_BYTES and not inward.over:
                self._wait()
            if outward.bucket is not None:
                while not outward.bucket.room and not inward.over:
                    self._changed.wait(outward.bucket.delay)
                    check_stop(self._stop)
                outward.bucket.take(size)
            if inward.over:
                # The other half takes nothing more. Going on would collect a file of any size in memory.
                raise StreamError("the other half of the session ended early")
            outward.waiting.append((Received(message, round_), size))
            outward.queued += size
            outward.bytes += size
            self.max_round = max(self.max_round, round_)
            cost = self._costs_by_name.setdefault(message.name, [0, 0])
            cost[0] += 1
            cost[1] += size
            self._changed.notify_all()

    def _receive(self, inward: _Direction, *, wait: bool) -> Received | None:
        with self._changed:
            while not inward.waiting:
                if inward.over:
                    raise StreamError("the other half of the session ended early")
                if not wait:
                    return None
                self._wait()
            received, size = inward.waiting.popleft()
            inward.queued -= size
            self._changed.notify_all()
            return received
