"""The messages of a turn as a source sends them."""

from __future__ import annotations

import os
from pathlib import Path

from rdc.catalog.signer import FileSigner
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Event
from rdc.protocol.connection import Received
from rdc.protocol.messages import Message, Start
from rdc.session.destination.change_turn import ChangeTurn
from rdc.session.runtime.commands import EventRelay, Receive
from rdc.session.transfer.destination import Destination, Terms
from rdc.session.trees.destination_root import open_destination
from rdc.tree.filters import FilterList

DELETE = SyncOptions(delete=True, fsync=False)
HERE = Metadata(0o755, 0, 0, 0)


def turn(
    place: Path,
    *messages: Message,
    only: bytes = b"wanted",
    kind: Kind = Kind.DIRECTORY,
    excluded: tuple[bytes, ...] = (),
) -> ChangeTurn:
    """Make a turn that received these messages."""
    start = Start(only, kind, HERE, Preserved(owner=False))
    events: list[Event] = []
    rules = tuple(FilterRule(RuleAction.EXCLUDE, pattern) for pattern in excluded)
    options = replace(DELETE, rules=rules)
    terms = Terms(options, FilterList(rules), bytes(16), FileSigner())
    destination_root = open_destination(os.fsencode(place), start, options, Preserved(owner=False))
    relay = EventRelay(events.append)
    found = ChangeTurn(Destination(terms, destination_root, start, relay, Preserved(owner=False)))
    conversation = found.run(0)
    assert next(conversation) == Receive()
    for message in messages:
        assert conversation.send(Received(message, 0)) == Receive()
    return found
