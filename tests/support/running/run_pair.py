"""Both ends of a conversation in one thread, without any I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from rdc.errors import RdcError
from rdc.protocol.messages import Refused
from rdc.session.runtime.driver import Runner, unknown_there

if TYPE_CHECKING:
    from rdc.protocol.connection import Connection
    from rdc.session.runtime.commands import Conversation

A = TypeVar("A")
B = TypeVar("B")


def run_pair(
    first: Conversation[A],
    first_connection: Connection,
    second: Conversation[B],
    second_connection: Connection,
) -> tuple[A, B]:
    """Perform both ends against each other in this thread, in turns: deterministic.

    Each goes on until it waits for the other, so messages arrive in the order they were sent and nothing
    depends on time. Raises the error of the side that failed first; RuntimeError when both wait.
    """
    ends = Runner(first, first_connection), Runner(second, second_connection)
    run_ends(*ends)
    return ends[0].value, ends[1].value


class End(Protocol):
    """A Runner, or what stands in for one."""

    over: bool
    rested: bool

    @property
    def connection(self) -> Wire: ...
    @property
    def waits(self) -> bool: ...
    def advance(self, polled: bool) -> None: ...
    def fail(self, error: RdcError) -> NoReturn: ...


class Wire(Protocol):
    """A Connection, or what stands in for one."""

    @property
    def can_refuse(self) -> bool: ...
    @property
    def max_round(self) -> int: ...
    def send(self, message: Refused, round: int) -> None: ...  # noqa: A002 - a Connection's
    def flush(self) -> None: ...
    def data_to_send(self) -> bytes: ...
    def receive_data(self, data: bytes) -> None: ...
    def receive_eof(self) -> None: ...


def run_ends(first: End, second: End) -> None:
    """Run two ends as run_pair does; the ends hold their conversations."""
    ends = (first, second)
    failure: RdcError | None = None
    idle = 0
    while not all(end.over for end in ends):
        for near, far in (ends, ends[::-1]):
            if near.over:
                far.rested = True  # whatever it has taken since, the stream has ended
                continue
            try:
                try:
                    near.advance(polled=True)
                except RdcError as error:
                    near.fail(error)
            except RdcError as error:
                near.over = True
                failure = failure or error
                if unknown_there(error) and near.connection.can_refuse:
                    near.connection.send(Refused(error.code, str(error)), near.connection.max_round)
            if near.over or near.waits:
                near.connection.flush()
            data = near.connection.data_to_send()
            idle = 0 if data or near.over or not near.waits else idle + 1
            far.connection.receive_data(data)
            if near.over:
                far.connection.receive_eof()
                far.rested = True
        if idle > 2:
            raise RuntimeError("both sides wait for the other")
    if failure is not None:
        raise failure
