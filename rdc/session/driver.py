"""The one performer of conversations over a transport: they yield what they want done, this has it done."""

from __future__ import annotations

from rdc.errors import RdcError, StreamError
from rdc.session.byte_link import ByteLink
from rdc.session.runner import Runner, unknown_there
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from rdc.protocol.connection import Connection
    from rdc.session.commands import Conversation
    from rdc.transport.base import Transport

__all__ = ["run"]

T = TypeVar("T")

PENDING_LOW = 64 << 10
"""What was held up because too much was queued goes on below this: a pump writes 192 KiB at least, not one
message at a time."""


def run(
    conversation: Conversation[T],
    connection: Connection,
    transport: Transport,
    *,
    timeout: float | None = None,
) -> T:
    """Perform `conversation` to its end and return its value; everything it sent has then left.

    timeout: seconds without a byte moving, None for no limit; a Pace of the conversation's replaces it. The
    transport is the caller's to close.
    Raises whatever the conversation raises; RdcError with the far side's code when that refused; StreamError,
    ProtocolError or IncompatiblePeerError (also raised at the conversation's yield). An RdcError that the far
    side does not know yet is sent to it first.
    """
    runner = Runner(conversation, connection)
    link = ByteLink(connection, transport, timeout)
    try:
        try:
            polled = False
            while True:
                runner.advance(polled)
                polled = True
                _set_pace(runner, link)
                if runner.over:
                    break
                if runner.sends:
                    runner.pressure.held_up(*link.drain(PENDING_LOW))
                    if link.ended:
                        _lament(runner)
                elif runner.idle is not None:
                    connection.flush()
                    runner.rested = link.rest(runner.idle)
                elif runner.waits:
                    if link.ended:
                        # Where it may end, but not here: this side still waits for something.
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
    pace, runner.pace = runner.pace, None
    if pace is None:
        return
    link.bucket = None
    if pace.bandwidth:
        from rdc.session.bandwidth import TokenBucket

        link.bucket = TokenBucket(pace.bandwidth)
    runner.pressure.limit(pace.bandwidth)
    if pace.timeout:
        link.timeout = pace.timeout
        if runner.heartbeat is None:
            from rdc.session.heartbeat import Heartbeat

            runner.heartbeat = Heartbeat(link.beat, pace.timeout)


def _lament(runner: Runner[Any]) -> NoReturn:
    """The far side ended its stream while this one has much to send: find its reason, drop the rest."""
    while runner.receive() is not None:
        pass
    raise StreamError("the far side ended the stream early")
