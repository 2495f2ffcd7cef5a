"""Contents compared by roots: what differs is fetched, what does not gets its metadata, each file once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog.small_files import SMALL_BYTES
from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode
from rdc.files.root.root import Root
from rdc.model.sync import SyncOptions
from rdc.plan.compare import Change, Difference
from rdc.progress import Event, ItemChanged, Problem
from rdc.protocol.messages import FileFailed, RootAnswer, RootRequest
from rdc.session.runtime.commands import Conversation, EventRelay, Send, TransferProgress
from rdc.session.transfer import content_checks as module
from rdc.session.transfer.commits import FileCommits
from rdc.session.transfer.content_checks import ContentChecks
from rdc.session.transfer.destination import PartialFiles
from rdc.session.trees import small_file_digests as many_roots
from rdc.signature.codec import group_references
from rdc.signature.tree import DIGEST_BYTES, sign
from tests.support.running.destinations import destination_at
from tests.support.trees.manifests import NOW, build, entry

SECRET = bytes(range(16))
OLD_MTIME = NOW - 10**9


@dataclass(frozen=True)
class File:
    touched: bool = True
    """Has another mtime here; otherwise its content is to be compared whatever it has."""
    theirs: bytes = b"x"
    """At the source when it is asked, which may be later than its listing; b"" cannot be read there."""
    listed: int = 1
    """Bytes here and in the listing."""

    @property
    def ours(self) -> bytes:
        return b"x" * self.listed

    @property
    def same(self) -> bool:
        return self.theirs == self.ours


class Case:
    def __init__(self, place: Path, files: Sequence[File], *, dry: bool = False) -> None:
        self.files = files
        rows = {b"%03d" % row: entry(b"%03d" % row, size=file.listed) for row, file in enumerate(files)}
        self.paths = [place / os.fsdecode(name) for name in rows]
        for path, file in zip(self.paths, files, strict=True):
            path.write_bytes(file.ours)
            mtime = OLD_MTIME if file.touched else NOW
            os.utime(path, ns=(mtime, mtime))
        self.events: list[Event] = []
        events = EventRelay(self.events.append)
        root, entries = Root.open(os.fsencode(place)), build(rows)
        self.landing = FileCommits(
            root, entries, events, fsync=False, owner=False, dry=dry, before_writing=bool
        )
        if files:
            identities = root.list(b"").identities
            assert identities is not None
            self.landing.listed.note(range(len(files)), identities, range(len(files)))
        self.progress = TransferProgress(events)
        context = destination_at(
            root,
            entries,
            self.landing,
            PartialFiles(root),
            events,
            self.progress,
            options=SyncOptions(fsync=False, dry_run=dry),
            secret=SECRET,
        )
        self.changed: list[int] = []
        changed: Any = self
        self.checks = ContentChecks(context, changed, self.add)
        self.requests: list[RootRequest] = []

    def add(self, file: int, size: int) -> None:
        """Stands for the bundles."""
        assert size == self.files[file].listed
        self.changed.append(file)

    def begin(self) -> None:
        """Begin as Directories does, before anything is asked."""
        touched = [row for row, file in enumerate(self.files) if file.touched]
        demanded = [row for row, file in enumerate(self.files) if not file.touched]
        self.landing.decide_many(touched, Change.CONTENT, Difference.TIME)
        self.landing.decide_many(demanded, Change.CHECK, Difference.NONE)
        size = sum(self.files[row].listed for row in touched)
        self.progress.total_bytes += size
        self.progress.compare_bytes += size
        self.checks.touched(touched)
        if demanded:
            self.checks.demand(demanded)

    def pumped(self, *, planned: bool = True) -> list[RootRequest]:
        found = []
        for message in done(self.checks.pump(1, planned=planned)):
            assert isinstance(message, RootRequest)
            found.append(message)
        self.requests += found
        return found

    def run(self, cuts: Sequence[int] = ()) -> None:
        """Answers as a source does; in parts that end after so many files, where there are as many."""
        self.begin()
        assert self.pumped(planned=False) == []
        rounds = 0
        while waiting := self.pumped():
            rounds += 1
            assert rounds < 5
            for request in waiting:
                self.answer(request, cuts)
        assert self.checks.idle

    def answer(self, request: RootRequest, cuts: Sequence[int] = ()) -> None:
        failed = [file for file in request.files if not self.files[file].theirs]
        for file in failed:
            failure = FileFailed(file, ExitCode.VANISHED, "gone")
            assert self.checks.expects(failure)
            done(self.checks.take(failure, 2))
            assert not self.checks.expects(failure)
        readable = [file for file in request.files if self.files[file].theirs]
        ends = sorted({min(cut, len(readable)) for cut in cuts} | {len(readable)})
        for start, stop in pairwise((0, *ends)):
            if start < stop:
                done(self.checks.take(self.root_answer(request, readable[start:stop]), 2))

    def root_answer(self, request: RootRequest, files: Sequence[int]) -> RootAnswer:
        contents = [self.files[file].theirs for file in files]
        roots = b"".join(sign(content, SYNC_PARAMS).root for content in contents)
        references = group_references(roots, SECRET, request.width, request.group)
        whole = request.width == DIGEST_BYTES and request.group == 1
        sizes = tuple(map(len, contents)) if whole else ()
        return RootAnswer(tuple(files), sizes, references, request.group)

    @property
    def items(self) -> list[str]:
        return sorted(
            os.fsdecode(event.path_bytes) for event in self.events if isinstance(event, ItemChanged)
        )


def done(conversation: Conversation[None]) -> list[object]:
    return [command.message for command in conversation if isinstance(command, Send)]


def check(case: Case) -> None:
    """What has to be true in the end, whatever was asked how."""
    different = [row for row, file in enumerate(case.files) if file.theirs and not file.same]
    assert sorted(case.changed) == different
    for path, file in zip(case.paths, case.files, strict=True):
        assert path.read_bytes() == file.ours
        settled = not file.touched or file.same
        assert path.stat().st_mtime_ns == (NOW if settled else OLD_MTIME)
    told = [
        path.name for path, file in zip(case.paths, case.files, strict=True) if file.touched and file.same
    ]
    assert case.items == told
    failed = {f"{row:03d}".encode() for row, file in enumerate(case.files) if not file.theirs}
    assert {event.path_bytes for event in case.events if isinstance(event, Problem)} == failed
    # All that was compared is told; what goes on to be fetched is compared there once more.
    fetched = sum(case.files[row].listed for row in different if not case.files[row].touched)
    assert case.progress.compare_bytes == sum(file.listed for file in case.files) + fetched


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bounds that a dozen files reach."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "ALIKE_FILES", 4)
        patch.setattr(module, "GROUP_FILES", 3)
        patch.setattr(module, "FILES_PER_CHECK", 7)
        patch.setattr(module, "OPENED_FILES_LEAST", 2)
        patch.setattr(module, "most_opened", lambda: 4)
        patch.setattr(many_roots, "READ_BYTES", SMALL_BYTES)
        yield


sizes = st.sampled_from([1, 1, 1, 2, SMALL_BYTES, SMALL_BYTES + 1])


@st.composite
def some_files(draw: st.DrawFn) -> File:
    listed = draw(sizes)
    same = b"x" * listed
    theirs = draw(st.sampled_from([same, same, same, b"y" + same[1:], same + b"x", b""]))
    return File(draw(st.sampled_from([True, True, True, False])), theirs, listed)


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(some_files(), max_size=16), st.lists(st.integers(1, 16), max_size=2))
def test_what_differs_is_fetched_and_the_rest_settled(
    small: None, tmp_path_factory: pytest.TempPathFactory, files: list[File], cuts: list[int]
) -> None:
    """Of files that cannot be read there neither is done. Few touched files are not asked about at all."""
    case = Case(tmp_path_factory.mktemp("place"), files)
    if sum(file.touched for file in files) < module.ALIKE_FILES:
        case.begin()
        case.pumped()
        touched = [row for row, file in enumerate(files) if file.touched]
        assert case.changed == touched
        assert {row for request in case.requests for row in request.files}.isdisjoint(touched)
        return
    case.run(cuts)
    check(case)


def test_groups_are_asked_about_first_and_only_those_that_differ_once_more(
    small: None, tmp_path: Path
) -> None:
    """By short references; what is to be compared for its own sake by whole roots."""
    case = Case(
        tmp_path, [File(theirs=b"y" if row == 4 else b"x") for row in range(14)] + [File(touched=False)]
    )
    case.run()
    asked = [(request.files, request.width, request.group) for request in case.requests]
    assert asked == [
        ((14,), DIGEST_BYTES, 1),
        (tuple(range(7)), module.REFERENCE_BYTES, 3),
        (tuple(range(7, 14)), module.REFERENCE_BYTES, 3),
        ((3, 4, 5), module.REFERENCE_BYTES, 1),
    ]
    check(case)


def test_groups_are_as_large_as_differences_are_rare(tmp_path: Path) -> None:
    for files, others, group in ((1_000, 0, 31), (1_000_000, 0, 256), (1_000, 1_000, 16)):
        case = Case(tmp_path, [])
        case.checks.touched(range(files))
        case.landing.planned = files + others
        asked = next(case.checks.pump(1, planned=True))
        assert isinstance(asked, Send)
        assert isinstance(asked.message, RootRequest)
        assert asked.message.group == group


def write_to(path: Path) -> None:
    """Of the same size, and with the mtime of before: what shows is the ctime."""
    before = path.stat().st_mtime_ns
    path.write_bytes(b"z" * path.stat().st_size)
    os.utime(path, ns=(before, before))


@pytest.mark.parametrize("row", [0, 5], ids=["in a group", "in the last group"])
@pytest.mark.parametrize("size", [1, SMALL_BYTES + 1], ids=["small", "large"])
def test_what_is_written_to_after_it_was_read_is_compared_again(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: int, size: int
) -> None:
    """And fetched, if it differs now; its new content never gets the mtime of the source's."""
    case = Case(tmp_path, [File(theirs=b"x" * size, listed=size)] * 6)
    groups = iter(range(2))

    def references(roots: bytes, *more: Any) -> bytes:
        # Everything of the group was read by now, and nothing was done about it.
        if len(roots) == 3 * DIGEST_BYTES and next(groups) == row // 3:
            write_to(case.paths[row])
        return group_references(roots, *more)

    case.begin()
    (request,) = case.pumped()
    answer = case.root_answer(request, request.files)
    monkeypatch.setattr(module, "group_references", references)
    done(case.checks.take(answer, 2))
    for again in case.pumped():
        done(case.checks.take(case.root_answer(again, again.files), 2))
    assert case.checks.idle
    assert case.paths[row].read_bytes() == b"z" * size
    assert case.paths[row].stat().st_mtime_ns == OLD_MTIME
    problems = [event.path_bytes for event in case.events if isinstance(event, Problem)]
    # Small ones are still open, and known to have changed; a large one is found out where it is settled.
    assert (case.changed, problems) == (([row], []) if size == 1 else ([], [b"%03d" % row]))
    assert (case.progress.total_bytes, case.progress.compare_bytes) == (6 * size, 6 * size)
    others = [path for number, path in enumerate(case.paths) if number != row]
    assert {path.stat().st_mtime_ns for path in others} == {NOW}


def test_a_dry_run_tells_and_changes_nothing(small: None, tmp_path: Path) -> None:
    case = Case(tmp_path, [File(False, b"y"), File(False), *[File()] * 6], dry=True)
    case.run()
    assert case.changed == []
    assert case.items == ["000", *(f"{row:03}" for row in range(2, 8))]
    assert {path.stat().st_mtime_ns for path in case.paths[2:]} == {OLD_MTIME}


def test_what_cannot_be_read_here_is_replaced(small: None, tmp_path: Path) -> None:
    """A directory has taken its place, or nothing is there any more."""
    case = Case(tmp_path, [File()] * 6)
    case.paths[1].unlink()
    case.paths[4].unlink()
    case.paths[4].mkdir()
    case.run()
    assert sorted(case.changed) == [1, 4]
    assert case.items == ["000", "002", "003", "005"]


def test_a_failure_of_what_was_not_asked_for_is_nobodys(small: None, tmp_path: Path) -> None:
    case = Case(tmp_path, [File()] * 5)
    case.begin()
    for file in (0, 4, 5, 1 << 40):
        assert not case.checks.expects(FileFailed(file, ExitCode.VANISHED, "gone"))


def test_a_root_that_is_said_to_be_of_another_size_is_none_of_ours(small: None, tmp_path: Path) -> None:
    case = Case(tmp_path, [File(touched=False)] * 3)
    case.begin()
    (request,) = case.pumped()
    answer = case.root_answer(request, request.files)
    done(case.checks.take(RootAnswer(answer.files, (1, 2, 0), answer.roots), 2))
    assert case.changed == [1, 2]
