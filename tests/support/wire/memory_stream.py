"""A sync between two threads over an in-memory byte stream, whose ends a test may damage."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.errors import RdcError
from rdc.model.location import Location
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.progress import silent
from rdc.protocol.connection import Connection
from rdc.session.runtime.driver import run
from rdc.session.serve import answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from rdc.transport.base import Transport
from tests.support.running.syncing import Way, contents_of
from tests.support.wire.memory_transport import pair

__all__ = ["stream_sync"]

Damage = Callable[[Transport], Transport]


def stream_sync(
    source: Path,
    destination: Path,
    options: SyncOptions,
    way: Way,
    *,
    near_damage: Damage = lambda end: end,
    far_damage: Damage = lambda end: end,
) -> SyncReport:
    """Sync the contents of `source` to `destination`, the remote side as `way` says, both in this process.
    Raises what the near side raises; an RdcError of the remote side is its own affair, as in a process of its
    own."""
    one, other = pair()
    near, far = near_damage(one), far_damage(other)
    places = Location(None, contents_of(source)), Location(None, os.fsencode(destination))
    conversation = SyncRun(*places, options, silent, NoCatalog())
    unexpected: list[BaseException] = []

    def serve() -> None:
        signer = FileSigner()
        try:
            run(answer(signer), Connection(False, greeting(signer.params)), far)
        except RdcError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            unexpected.append(error)
        finally:
            far.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        connection = Connection(True, greeting(FileSigner().params))
        if way is Way.PUSH:
            tree = SourceTree.open(contents_of(source))
            try:
                done = run(conversation.send(tree), connection, near)
            finally:
                tree.root.close()
        else:
            done = run(conversation.fetch(), connection, near)
        return conversation.totals(done, connection)
    finally:
        near.close()
        thread.join()
        if unexpected:
            raise unexpected[0]
