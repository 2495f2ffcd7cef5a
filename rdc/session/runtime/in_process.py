"""Runs both halves of a session in one process, each in a thread, without a byte stream.

Messages pass by reference. Messages without content are still encoded and decoded, so they are checked and
counted as on a wire; contents, and long lists of what the user chose, are counted by their lengths. Each
direction holds a bounded number of bytes before its sender waits, like the driver's queues.

Contents pass through memory. copy_file_range would save one and a half copies, but its output would have to
be read back for hashing, which costs more. A file with messages of its own is hashed once, by the source:
what the destination writes is that very memory, which nothing can change (`WholeFileWriter`). Chunks of a
snapshot were compared with their keys when they were decoded, so such a file needs no other hash. Where
blocks can be shared, the source reads a private clone of a long file, and the new file begins as a clone of
that (rdc.files.replace.cloning). Nothing is written then, and what the source has hashed is what the
new file holds.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from rdc.errors import ExitCode, RdcError, StreamError
from rdc.lean.typed import Generic, TypeVar
from rdc.limits import INBOUND_BYTES
from rdc.progress import STOP_SECONDS, check_stop
from rdc.protocol.connection import DIALECT, Received, cost_of, dearest_first
from rdc.protocol.messages import Data, FileBatch, Rules, Selected, decode, encode_parts
from rdc.protocol.wire.options import rule_bytes
from rdc.protocol.wire.stream import frame_head
from rdc.session.runtime.commands import AskAgreement, Command, Conversation, Pace, Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.runs import MessageCost
    from rdc.progress import StopSignal
    from rdc.protocol.messages import Message
    from rdc.session.runtime.driver import TokenBucket


T = TypeVar("T")
V = TypeVar("V")

BEATS = 4
"""Looks at the other half within a time limit."""

_NOTHING = 0.001
"""Seconds. What other threads use the processor for while all wait: less than this between two looks."""

CONTENT_OVERHEAD = 16
"""Bytes that a message adds to its content on a wire: heads of block and frame, ordinal, length."""


def _size_of(message: Message) -> int | None:
    """Return the bytes of a message that passes by reference; None for one that is encoded."""
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


class _Silence:
    """Notices that the other half of a session, and its threads, do nothing for too long: it hangs in a
    system call. It works while messages pass or while it uses the processor."""

    def __init__(self, limit: float) -> None:
        """`limit`: in seconds."""
        self._limit = limit
        self.interval = limit / BEATS
        self._since = time.monotonic()
        self._used = self._others()

    @staticmethod
    def _others() -> float:
        """Return the seconds that all threads but this one have used the processor for."""
        return time.process_time() - time.thread_time()

    def check(self) -> None:
        """Raise RdcError (exit code 30) if it is too long now."""
        used, now = self._others(), time.monotonic()
        if used > self._used + _NOTHING:
            self._since, self._used = now, used
        elif now - self._since >= self._limit:
            text = f"the other half of the session did nothing for {self._limit:g} seconds (--timeout)"
            raise RdcError(f"{text}; does a file system hang?", code=ExitCode.TIMEOUT)


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
        self._timeout = 0
        """Seconds of silence to bear; 0 for no limit."""
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
        """Run both conversations and return the value of `near`. Raises the first error of either side."""
        # A daemon: where it hangs in a system call, the process ends without it. It only reads.
        thread = threading.Thread(target=self._run_far, name="rdc source", daemon=True)
        thread.start()
        hangs = False
        try:
            return self._perform(self._near, self._there, self._back)
        except StreamError:
            # If the other half ended early, `_failure` has its reason, which was set before.
            if self._failure is not None:
                raise self._failure from None
            raise
        except RdcError as error:
            hangs = error.code is ExitCode.TIMEOUT
            raise
        finally:
            self._end(self._there)
            if not hangs:
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
            self._timeout = command.timeout
            outward.bucket = None
            if command.bandwidth:
                from rdc.session.runtime.driver import TokenBucket

                outward.bucket = TokenBucket(command.bandwidth)
        return None

    def _silence(self) -> _Silence | None:
        return _Silence(self._timeout) if self._timeout else None

    def _wait(self, silence: _Silence | None) -> None:
        """Wait for a change. Raises StoppedError once the stop signal is set, and RdcError (exit code 30) if
        the other half hangs."""
        seconds = None if self._stop is None else STOP_SECONDS
        if silence is not None:
            seconds = silence.interval if seconds is None else min(seconds, silence.interval)
        self._changed.wait(seconds)
        check_stop(self._stop)
        if silence is not None:
            silence.check()

    def _send(self, message: Message, round_: int, outward: _Direction, inward: _Direction) -> None:
        size = _size_of(message)
        if size is None:
            payload = b"".join(encode_parts(message))
            size = len(frame_head(message.kind, round_, len(payload))) + len(payload)
            message = decode(message.kind, payload)
        with self._changed:
            silence = None
            while outward.queued > INBOUND_BYTES and not inward.over:
                silence = silence or self._silence()
                self._wait(silence)
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
            silence = self._silence() if wait and not inward.waiting else None
            while not inward.waiting:
                if inward.over:
                    raise StreamError("the other half of the session ended early")
                if not wait:
                    return None
                self._wait(silence)
            received, size = inward.waiting.popleft()
            inward.queued -= size
            self._changed.notify_all()
            return received
