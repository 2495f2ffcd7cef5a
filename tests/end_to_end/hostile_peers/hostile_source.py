"""A program that speaks rdc as a source on stdin and stdout, and tells of too much below one long path.

As a remote shell it is started with words that it ignores. It dials where ROLE is "dials".
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

from rdc.chunking import SYNC_PARAMS
from rdc.model.entries import Kind, Metadata
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Describe, ListingPart, Message, Open, Opened, Role, Start
from rdc.session.serve import greeting
from tests.support.wire.claimed_entries import below, listing, names

__all__: list[str] = []

METADATA = Metadata(0o755, 10**18, 0, 0)
SECONDS = 60
"""After which this ends, whatever the other side does."""

DIRECTORIES = 15_000
"""In one message. Joined with their path they are 240 MB."""


def script(messages: int) -> Iterator[Message]:
    """The deepest directory in so many messages."""
    *lead, last = below(Kind.DIRECTORY, DIRECTORIES)
    yield from lead
    assert isinstance(last, ListingPart)
    for number in range(messages):
        entries = names(DIRECTORIES, number * DIRECTORIES)
        done = number + 1 == messages
        first = last.first + number * DIRECTORIES
        yield ListingPart(last.directory, last.path, first, done, listing(entries, Kind.DIRECTORY))


def main() -> None:
    signal.alarm(SECONDS)
    dials = os.environ.get("ROLE") == "dials"
    connection = Connection(dials, greeting(SYNC_PARAMS))

    def push() -> None:
        connection.flush()
        data = connection.data_to_send()
        while data:
            data = data[os.write(1, data) :]

    def wait_for(kind: type[Message]) -> int:
        push()
        while True:
            received = connection.next()
            if received is None:
                data = os.read(0, 1 << 16)
                if not data:
                    sys.exit(0)
                connection.receive_data(data)
            elif isinstance(received.message, kind):
                return received.round

    if dials:
        options = SyncOptions(dry_run=True, items=True)
        connection.send(Open(Role.DESTINATION, os.fsencode(os.environ["PLACE"]), bytes(16), options), 0)
    else:
        wait_for(Open)
        connection.send(Opened(), 1)
    round_ = wait_for(Describe) + 1
    connection.send(Start(b"", Kind.DIRECTORY, METADATA), round_)
    try:
        for message in script(int(os.environ["MESSAGES"])):
            connection.send(message, round_)
            push()
        os.close(1)
        # What the other side says last: it does not end for want of a reader.
        while os.read(0, 1 << 16):
            pass
    except OSError:
        pass  # the other side ended first


if __name__ == "__main__":
    main()
