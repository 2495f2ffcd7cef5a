"""Limits on a slow line: bandwidth on whichever side sends, signs of life, and what long reading tells."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, RdcError
from rdc.model.sync import SyncOptions
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed
from rdc.protocol.connection import DIALECT, Connection
from rdc.protocol.messages import Items, Notice, decode, encode
from rdc.session.runtime import driver
from rdc.session.runtime.commands import PROGRESS_SECONDS, Conversation, EventRelay, Pace, Receive, Send
from rdc.session.runtime.driver import TokenBucket, run
from tests.support.running.fake_environment import FakeClock
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import File, tree, write_tree
from tests.support.wire.memory_transport import pair

MIB = 1 << 20
RATE = 10**8 + 1
HELLO = DIALECT.hello("rdc test", bytes(32))


# --- the bucket ---------------------------------------------------------------------------------------------


@given(
    st.integers(512, 10**9),
    st.lists(st.tuples(st.floats(0, 2), st.integers(1, 1 << 22)), min_size=1, max_size=60),
)
def test_no_more_than_the_rate_and_a_burst_ever_passes(rate: int, writes: list[tuple[float, int]]) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate, clock)
    burst, passed = bucket.room, 0
    for pause, wanted in writes:
        clock.now += pause
        size = min(wanted, bucket.room)
        bucket.take(size)
        passed += size
        assert passed <= burst + rate * clock.now + 1
    clock.now += bucket.delay + 1e-6
    assert bucket.room > 0, "after its delay something may be written"


@given(st.integers(512, 10**9), st.integers(1, 1 << 22))
def test_a_debt_is_paid_before_more_passes(rate: int, size: int) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate, clock)
    burst = bucket.room
    bucket.take(size)
    clock.now += bucket.delay + 1e-6
    assert bucket.room > 0
    assert size <= burst + rate * clock.now + 1


class CountedBucket(TokenBucket):
    """Remembers what passes it, and lets everything pass at once."""

    rates: list[int]
    taken: int

    def __init__(self, rate: int) -> None:
        super().__init__(10**12)
        CountedBucket.rates.append(rate)

    def take(self, size: int) -> None:
        CountedBucket.taken += size


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[CountedBucket]:
    CountedBucket.rates, CountedBucket.taken = [], 0
    monkeypatch.setattr(driver, "TokenBucket", CountedBucket)
    return CountedBucket


@pytest.mark.parametrize("way", list(Way))
def test_all_that_a_side_sends_passes_its_bucket(
    way: Way, counted: type[CountedBucket], tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "source", tree({"f": random.Random(1).randbytes(MIB)}))
    report = run_sync(source, tmp_path / "destination", SyncOptions(bandwidth=RATE), way=way).done
    if way is Way.HERE:
        assert counted.rates == [RATE, RATE]
        assert counted.taken == report.bytes_sent + report.bytes_received
    else:
        # The remote side has a bucket of its own. What went before Open asked for it is not in this one.
        assert counted.rates == [RATE]
        assert report.bytes_sent - 100 <= counted.taken <= report.bytes_sent


def test_the_far_side_keeps_to_the_rate(tmp_path: Path) -> None:
    """Where it is the source, all of the content passes its bucket: so much takes so long at least."""
    source = write_tree(tmp_path / "source", tree({"f": random.Random(1).randbytes(MIB)}))
    began = time.monotonic()
    run_sync(source, tmp_path / "destination", SyncOptions(bandwidth=2 * MIB), way=Way.PULL)
    assert time.monotonic() - began >= (MIB - 0.1 * 2 * MIB) / (2 * MIB)
    assert (tmp_path / "destination" / "f").read_bytes() == (source / "f").read_bytes()


# --- signs of life ------------------------------------------------------------------------------------------


def test_a_side_at_work_is_not_taken_for_dead() -> None:
    """One end works for longer than the time limit without a message; the other one waits for it."""
    near, far = pair()
    said: list[str] = []

    def working() -> Conversation[None]:
        yield Pace(0, 2)
        yield Receive()
        time.sleep(3)
        said.append("worked")

    def waiting() -> Conversation[None]:
        yield Pace(0, 2)
        yield Receive()
        yield Receive()

    def work() -> None:
        run(working(), Connection(False, HELLO), far)
        far.close()

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(RdcError) as caught:
        run(waiting(), Connection(True, HELLO), near)
    # The end of the stream, not of patience.
    assert caught.value.code is ExitCode.STREAM
    assert said == ["worked"]
    thread.join()
    near.close()


def test_a_side_that_only_waits_gives_no_sign() -> None:
    """Two that wait for each other are dead: signs of life would keep them so for ever."""
    ends = pair()
    codes: list[ExitCode] = []

    def waiting() -> Conversation[None]:
        yield Pace(0, 1)
        yield Receive()
        yield Receive()

    def wait(dialler: bool) -> None:
        try:
            run(waiting(), Connection(dialler, HELLO), ends[dialler])
        except RdcError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=wait, args=(dialler,)) for dialler in (False, True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ExitCode.TIMEOUT in codes


@pytest.mark.parametrize("way", list(Way))
def test_a_sync_within_its_time_limit_is_a_sync(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"d/f": b"x" * 100_000, "g": b"y"}))
    run = run_sync(source, tmp_path / "destination", SyncOptions(timeout=30, bandwidth=10**8), way=way)
    assert run.done.exit is ExitCode.OK
    assert (tmp_path / "destination" / "g").read_bytes() == b"y"


# --- what is told -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("way", list(Way))
def test_a_first_run_over_a_copy_tells_how_much_is_read(way: Way, checksum: bool, tmp_path: Path) -> None:
    sizes = {"big": 24 * MIB, "d/small": 1_000, "middle": 2 * MIB}
    contents = {name: random.Random(size).randbytes(size) for name, size in sizes.items()}
    source = write_tree(tmp_path / "source", tree({name: File(data) for name, data in contents.items()}))
    copies = {name: File(data, 0o644, 1) for name, data in contents.items()}
    destination = write_tree(tmp_path / "destination", tree(dict(copies)))
    if checksum:
        for name in sizes:
            stat = (source / name).stat()
            os.utime(destination / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    run = run_sync(source, destination, SyncOptions(checksum=checksum), way=way)
    assert run.done.literal_bytes == 0
    total = sum(sizes.values())
    told = [event for event in run.events if isinstance(event, Progressed) and event.phase == "compare"]
    at = next(i for i, event in enumerate(run.events) if isinstance(event, PlanKnown))
    before = [
        (event.phase, event.done, event.total) for event in run.events[:at] if isinstance(event, Progressed)
    ]
    assert ("compare", 0, total) in before, "the total is there before the plan is"
    assert [event.done for event in told] == sorted(event.done for event in told)
    assert (told[-1].done, told[-1].total) == (total, total)
    if way is not Way.PUSH:
        # From inside the big file, not only when it is through.
        assert sum(event.done < sizes["big"] for event in told) >= 4


def test_a_first_copy_reads_nothing_at_the_destination(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"f": bytes(3 * MIB)}))
    run = run_sync(source, tmp_path / "destination")
    assert not [event for event in run.events if isinstance(event, Progressed) and event.phase == "compare"]


@pytest.mark.parametrize("way", list(Way))
def test_progress_inside_a_big_file_is_told(way: Way, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"f": random.Random(1).randbytes(16 * MIB)}))
    run = run_sync(source, tmp_path / "destination", SyncOptions(bandwidth=12 * MIB), way=way)
    told = [event.done for event in run.events if isinstance(event, Progressed)]
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[0] < 8 * MIB, "not only when it is through"


def test_progress_is_sent_no_more_often_than_it_is_worth() -> None:
    clock = FakeClock()
    news = EventRelay(None, clock)
    for step in range(1_000):
        clock.now = step / 1_000
        news.report(Progressed("transfer", step, 999))
        news.report(Progressed("compare", min(step, 500), 500))
    sent: list[Any] = list(news.send_waiting(0))
    assert not news.waiting
    transfers = [command for command in sent if command.message.phase == "transfer"]
    assert len(transfers) <= 1 / PROGRESS_SECONDS + 2
    assert transfers[-1].message.done == 999  # the end is always told


def test_items_share_messages_within_their_bounds() -> None:
    """In order among the other news; a long path or link target takes a message of its own."""
    news = EventRelay(None)
    events: list[Event] = [ItemChanged(">f+++++++++", b"f%d" % i) for i in range(5000)]
    events.insert(3, Problem(ExitCode.PARTIAL, b"p", "p: a problem"))
    events.append(ItemChanged("cL+++++++++", b"l" * 16_000, b"t" * 16_000))
    events += [ItemChanged("cL+++++++++", b"m" * 16_000 + b"%d" % i, b"t") for i in range(36)]
    for event in events:
        news.report(event)
    sent = [command.message for command in news.send_waiting(4) if isinstance(command, Send)]
    assert [type(message) for message in sent[:4]] == [Items, Notice, Items, Items]
    assert len(sent) == 6
    heard: list[Event] = []
    far = EventRelay(heard.append)
    for message in sent:
        assert far.take(decode(message.kind, encode(message)))
    # What the remote side received, it was sent from here.
    expected = [
        ItemChanged("<" + e.change[1:], e.path_bytes, e.target_bytes)
        if isinstance(e, ItemChanged) and e.change[0] == ">"
        else e
        for e in events
    ]
    assert heard == expected
    assert not news.waiting
