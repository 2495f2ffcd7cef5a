"""What transfers work with: what a new version replaces, the metadata it gets, signing step by step."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rdc.errors import ExitCode, FileChangedError, FileError
from rdc.files.root.root import Root
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.model.entries import Identity, Kind
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Progressed
from rdc.protocol.messages import Message, Progress
from rdc.session.runtime.commands import EventRelay, Flush, Send, TransferProgress
from rdc.session.transfer.bases import QUIET_BYTES, sign_file
from rdc.session.transfer.destination import Destination
from rdc.signature.tree import sign
from tests.support.running.destinations import destination_at
from tests.support.trees.manifests import NOW, build, entry

ROWS = {b"d": entry(b"d", Kind.DIRECTORY), b"f": entry(b"f", mode=0o600, mtime_ns=NOW, uid=3, gid=4)}


def context(
    place: Path, *, listed: Identity | None = None, far: bool = False, dry: bool = False
) -> Destination:
    """`listed`: what the file `f` was when it was listed; `far`: the user sits at the other side."""
    reported: list[Event] = []
    events = EventRelay(None if far else reported.append, iter(range(1 << 20)).__next__)
    progress = TransferProgress(events)
    landing: Any = SimpleNamespace(listed=SimpleNamespace(of={1: listed}.get))
    root = Root.open(os.fsencode(place))
    options = SyncOptions(dry_run=dry, max_size=1000)
    return destination_at(root, build(ROWS), landing, SimpleNamespace(), events, progress, options=options)


def test_a_new_version_replaces_what_is_there_and_nothing_that_comes_later(tmp_path: Path) -> None:
    """What was listed counts. Where nothing was, whatever is there now is somebody else's."""
    (tmp_path / "f").write_bytes(b"x")
    assert context(tmp_path).expected(1, b"f") is None
    listed = context(tmp_path).root.identity(b"f")
    (tmp_path / "f").write_bytes(b"later")
    assert context(tmp_path, listed=listed).expected(1, b"f") == listed


def test_metadata_are_the_listed_ones_but_for_a_later_mtime(tmp_path: Path) -> None:
    found = context(tmp_path)
    listed = ROWS[b"f"].metadata
    assert found.metadata(1, None) == listed
    for mtime in (0, -1, NOW + 1):
        assert found.metadata(1, mtime) == replace(listed, mtime_ns=mtime)


@pytest.mark.parametrize(
    ("code", "told"),
    [(ExitCode.VANISHED, ExitCode.PARTIAL), (ExitCode.PARTIAL, ExitCode.PARTIAL), (ExitCode.FILE_IO,) * 2],
)
def test_what_could_not_be_written_is_no_fault_of_the_source(
    code: ExitCode, told: ExitCode, tmp_path: Path
) -> None:
    found = context(tmp_path)
    found.problem(b"shown", FileError(b"f", "f: why", code=code))
    assert found.events.codes == {told}
    assert found.events.errors == 1


def steps_of(found: Destination, path: Path, size: int, **more: bool) -> tuple[list[Message | None], Any]:
    """Messages that were sent while a file was signed, None for each Flush; and the tree."""
    steps: list[Message | None] = []
    with found.root.open_read(os.fsencode(path.name)) as source:
        work = sign_file(found, source, size, 7, **more)
        try:
            while True:
                step = next(work)
                if isinstance(step, Send):
                    assert step.round == 7
                    steps.append(step.message)
                else:
                    assert step == Flush()
                    steps.append(None)
        except StopIteration as stop:
            return steps, stop.value


@pytest.mark.parametrize("far", [False, True], ids=["here", "far"])
@pytest.mark.parametrize("new_size", [QUIET_BYTES, 9 * QUIET_BYTES], ids=["shorter", "longer"])
def test_a_long_file_is_told_of_while_it_is_read(far: bool, new_size: int, tmp_path: Path) -> None:
    """In bytes of the new version, which never go back nor past its size; and sent at once."""
    content = os.urandom(5 * QUIET_BYTES)
    (tmp_path / "f").write_bytes(content)
    found = context(tmp_path, far=far)
    told: list[int] = []
    show = found.events.report

    def report(event: Event, *, far: bool = False) -> None:
        assert isinstance(event, Progressed)
        told.append(event.done)
        show(event, far=far)

    found.events.report = report  # type: ignore[method-assign] # of this object alone
    steps, tree = steps_of(found, tmp_path / "f", new_size)
    assert tree == sign(content, found.signer.params)
    assert told == sorted(told)
    assert told[0] > 0
    assert told[-1] == min(new_size, len(content))
    # A clock of seconds: no news is too soon.
    assert steps == (
        [step for done in told for step in (Progress("compare", done, None), None)] if far else []
    )


def test_a_short_file_is_signed_at_once_and_lets_older_news_go_first(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(QUIET_BYTES))
    found = context(tmp_path, far=True)
    assert steps_of(found, tmp_path / "f", 9)[0] == []
    found.events.report(Progressed("compare", 1, 2))
    assert steps_of(found, tmp_path / "f", 9)[0] == [Progress("compare", 1, 2), None]


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("passing", [False, True])
def test_the_catalog_is_not_told_of_what_is_about_to_go(dry: bool, passing: bool, tmp_path: Path) -> None:
    """In a dry run it stays."""
    (tmp_path / "f").write_bytes(b"content")
    found = context(tmp_path, dry=dry)
    told: list[bool] = []

    def sign_(source: SourceFile, *, passing: bool = False) -> object:
        told.append(passing)
        return sign(source.whole(), found.signer.params)

    found.signer.sign = sign_  # type: ignore[assignment,method-assign] # of this object alone
    steps_of(found, tmp_path / "f", 7, passing=passing)
    assert told == [passing and not dry]


def test_a_signature_that_is_given_up_stops_its_reading(tmp_path: Path) -> None:
    """And one of a file that is written to meanwhile is none."""
    (tmp_path / "f").write_bytes(bytes(5 * SPAN_BYTES))
    found = context(tmp_path, far=True)
    with found.root.open_read(b"f") as source:
        closed: list[bool] = []
        signing = found.signer.signing

        def watched(one: SourceFile) -> Any:
            try:
                return (yield from signing(one))
            finally:
                closed.append(True)

        found.signer.signing = watched  # type: ignore[assignment,method-assign] # of this object alone
        work = sign_file(found, source, source.size, 0)
        next(work)
        work.close()
        assert closed == [True]
        work = sign_file(found, source, source.size, 0)
        next(work)
        (tmp_path / "f").write_bytes(b"x")
        with pytest.raises(FileChangedError):
            list(work)
        assert closed == [True, True]
