"""A stand-in for rdc.session.sync.sync, for the tests of `rdc sync`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rdc.catalog.store import SignatureStore, UserCatalog
from rdc.cli.verbs import sync
from rdc.errors import ExitCode
from rdc.model.location import Location, RemoteShell
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.progress import ItemChanged, PlanKnown, Progressed, Reporter, StopSignal
from tests.support.running.fake_environment import FakeProcess

__all__ = ["REPORT", "FakeSyncer", "asked"]


REPORT = SyncReport(
    files=1,
    total_bytes=10,
    changed=1,
    deleted=0,
    moved=0,
    bytes_sent=500,
    bytes_received=1_200,
    literal_bytes=10,
    reused_bytes=0,
    round_trips=4,
    errors=0,
    exit=ExitCode.OK,
    created=1,
    entries=1,
)


class FakeSyncer:
    """Records its arguments, reports one change, then raises `end` or returns `report`."""

    def __init__(
        self,
        report: SyncReport = REPORT,
        end: BaseException | None = None,
        act: Callable[[], None] | None = None,
    ) -> None:
        self.report = report
        self.end = end
        self.act = act
        self.source = self.destination = Location(None, b"?")
        self.options = SyncOptions()
        self.shell = RemoteShell()
        self.catalog: SignatureStore | UserCatalog | None = None
        self.keys: str | os.PathLike[str] | None = None
        self.stop: StopSignal | None = None
        self.calls = 0

    def __call__(
        self,
        source: Location | Sequence[Location],
        destination: Location,
        options: SyncOptions,
        *,
        shell: RemoteShell,
        reporter: Reporter,
        catalog: SignatureStore | UserCatalog | None,
        keys: str | os.PathLike[str] | None,
        stop: StopSignal | None = None,
    ) -> SyncReport:
        self.sources = (source,) if isinstance(source, Location) else tuple(source)
        self.source = self.sources[0]
        self.destination, self.options, self.shell = destination, options, shell
        self.catalog, self.keys = catalog, keys
        self.stop = stop
        self.calls += 1
        reporter(PlanKnown(1, 10, 0))
        reporter(ItemChanged(">f+++++++++", b"a"))
        if self.act is not None:
            self.act()
        if self.end is not None:
            raise self.end
        reporter(Progressed("transfer", 10, 10))
        return self.report


def asked(*words: str, process: FakeProcess | None = None) -> FakeSyncer:
    """Runs `rdc sync WORDS src/ dst` and returns the stand-in with its arguments."""
    syncer = FakeSyncer()
    environment = (process or FakeProcess()).environment
    assert sync.run([*words, "src/", "dst"], environment, syncer=syncer) is ExitCode.OK
    assert syncer.calls == 1
    return syncer
