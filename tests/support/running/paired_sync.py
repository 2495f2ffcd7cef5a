"""A sync of two real trees in one thread: both ends in turns over two connections, as through a pipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.chunking import ChunkParams
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import DIALECT, Connection
from rdc.protocol.messages import Role
from rdc.session.runtime.commands import Conversation
from rdc.session.serve import answer
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from tests.support.running.run_pair import run_pair
from tests.support.running.syncing import Run, contents_of

T = TypeVar("T")

__all__ = ["Program", "Remembering", "kinds", "sync_in_turns"]


class Remembering(NoCatalog):
    """A catalog that keeps settled pairs in a set, and nothing else."""

    def __init__(self) -> None:
        self.settled: set[bytes] = set()

    def remember_in_sync(self, key: bytes) -> None:
        self.settled.add(key)

    def is_in_sync(self, key: bytes) -> bool:
        return key in self.settled


class Program:
    """The program at one end: this rdc. A test may put another in its place."""

    dialect = DIALECT

    def connection(self, dialler: bool, params: ChunkParams) -> Connection:
        return Connection(dialler, self.dialect.hello("rdc", params.id), dialect=self.dialect)

    def converse(self, conversation: Conversation[T], connection: Connection) -> Conversation[T]:
        """The conversation as this program holds it on `connection`."""
        return conversation


def sync_in_turns(
    source: Path | bytes,
    destination: Path | bytes,
    options: SyncOptions | None = None,
    *,
    dialler: Role = Role.DESTINATION,
    catalog: NoCatalog | None = None,
    programs: tuple[Program, Program] = (Program(), Program()),
) -> Run:
    """`dialler` is where the user sits. The catalog is the destination's. Raises what a sync raises.

    programs: the dialler's and the remote side's.
    """
    ends = [contents_of(place) if isinstance(place, Path) else place for place in (source, destination)]
    store, other = catalog or NoCatalog(), NoCatalog()
    pulls = dialler is Role.DESTINATION
    run = Run()
    here = SyncRun(
        Location(None, ends[0]),
        Location(None, ends[1]),
        options or SyncOptions(fsync=False),
        run.events.append,
        store if pulls else other,
    )
    signer = FileSigner(catalog=other if pulls else store)
    here_runs, there_runs = programs
    near, far = here_runs.connection(True, signer.params), there_runs.connection(False, signer.params)
    there = there_runs.converse(answer(signer), far)
    if pulls:
        done, _ = run_pair(here_runs.converse(here.fetch(), near), near, there, far)
    else:
        tree = SourceTree.open(os.fsencode(ends[0]))
        try:
            done, _ = run_pair(here_runs.converse(here.send(tree), near), near, there, far)
        finally:
            tree.root.release()
    run.report = here.totals(done, near)
    return run


def kinds(run: Run) -> set[str]:
    """Names of the messages that were sent."""
    return {cost.name for cost in run.done.by_kind}
