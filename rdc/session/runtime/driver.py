"""Runs a conversation over a transport: performs the commands that it yields."""

from __future__ import annotations

from rdc.errors import RdcError, StreamError
from rdc.lean.typed import TypeVar
from rdc.progress import check_stop
from rdc.session.runtime.byte_link import ByteLink
from rdc.session.runtime.runner import Runner, unknown_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from rdc.progress import StopSignal
    from rdc.protocol.connection import Connection
    from rdc.session.runtime.commands import Conversation
    from rdc.transport.base import Transport

__all__ = ["run"]

T = TypeVar("T")

PENDING_LOW = 64 << 10
"""Queued bytes below which a conversation that was held up goes on. So each wait writes at least 192 KiB,
not one message at a time."""


def run(
    conversation: Conversation[T],
    connection: Connection,
    transport: Transport,
    *,
    timeout: float | None = None,
    stop: StopSignal | None = None,
) -> T:
    """Runs `conversation` to its end and returns its value. All messages have then been written.

    timeout: seconds without a byte moving; None for no limit. A Pace command replaces it. The caller closes
    the transport. Raises what the conversation raises, and RdcError with the far side's code if the far
    side refused. Raises StreamError, ProtocolError or IncompatiblePeerError, also at the conversation's
    yield. Raises StoppedError once `stop` is set. An RdcError that the far side does not know yet is first
    sent to it.
    """
    runner = Runner(conversation, connection)
    link = ByteLink(connection, transport, timeout, stop)
    try:
        try:
            polled = False
            while True:
                check_stop(stop)
                runner.advance(polled)
                polled = True
                _set_pace(runner, link)
                if runner.over:
                    break
                if runner.sends:
                    runner.policy.note_delay(*link.drain(PENDING_LOW))
                    if link.ended:
                        _raise_ended(runner)
                elif runner.idle is not None:
                    connection.flush()
                    runner.rested = link.rest(runner.idle)
                elif runner.waits:
                    if link.ended:
                        # This side still waits for a message.
                        raise StreamError("the far side ended the session early")
                    connection.flush()
                    link.step(wait=True)
                else:
                    link.step(wait=False)
            connection.flush()
            link.drain(1)
        except RdcError as error:
            runner.fail(error)
    except RdcError as error:
        if unknown_there(error):
            link.refuse(error)
        raise
    finally:
        if runner.heartbeat is not None:
            runner.heartbeat.stop()
        conversation.close()
    return runner.value


def _set_pace(runner: Runner[Any], link: ByteLink) -> None:
    """Applies the limits of the last Pace command, if there is a new one."""
    pace, runner.pace = runner.pace, None
    if pace is None:
        return
    link.bucket = None
    if pace.bandwidth:
        from rdc.session.runtime.bandwidth import TokenBucket

        link.bucket = TokenBucket(pace.bandwidth)
    runner.policy.limit(pace.bandwidth)
    if pace.timeout:
        link.timeout = pace.timeout
        if runner.heartbeat is None:
            from rdc.session.runtime.keepalive import Keepalive

            runner.heartbeat = Keepalive(link.beat, pace.timeout)


def _raise_ended(runner: Runner[Any]) -> NoReturn:
    """Handles a stream that the far side ended while this side was sending.

    Raises the far side's reason if it sent one, else StreamError. Drops all other input.
    """
    while runner.receive() is not None:
        pass
    raise StreamError("the far side ended the stream early")
