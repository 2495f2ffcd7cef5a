"""What a caller sees of progress only grows, whatever is reported."""

from __future__ import annotations

import random
import threading
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import rdc
from rdc.library import Forward, reporting
from rdc.progress import silent

EVENTS = st.lists(
    st.builds(
        rdc.Progressed,
        st.sampled_from(["compare", "transfer"]),
        st.integers(0, 20),
        st.none() | st.integers(0, 20),
    )
)


def grow(events: list[rdc.Progressed]) -> None:
    for phase in {event.phase for event in events}:
        own = [event for event in events if event.phase == phase]
        for before, event in pairwise(own):
            assert event.done >= before.done
            assert event != before
            if before.total is not None:
                assert event.total is not None
                assert event.total >= before.total
        assert all(event.total is None or event.done <= event.total for event in own[1:])


@given(EVENTS)
def test_no_figure_goes_back(events: list[rdc.Progressed]) -> None:
    seen: list[rdc.Progressed] = []
    forward = Forward(silent, seen.append)
    for event in events:
        forward(event)
    grow(seen)
    for phase in {event.phase for event in events}:
        assert (
            max(event.done for event in events if event.phase == phase)
            == [event.done for event in seen if event.phase == phase][-1]
        )
    forward.finish()
    grow(seen)


def test_the_rate_of_the_line_is_passed_on() -> None:
    seen: list[rdc.Progressed] = []
    forward = Forward(silent, seen.append)
    for done in (1, 2):
        forward(rdc.Progressed("transfer", done, 9, line_bytes=100 * done))
    assert [event.line_bytes for event in seen] == [100, 200]


def test_a_two_way_sync_and_an_undo_report_progress(tmp_path: Path) -> None:
    for side in ("left", "right"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "both").write_text("same")
    (tmp_path / "left/new").write_bytes(bytes(3 << 20))
    seen: list[rdc.Progressed] = []
    rdc.unite(tmp_path / "left", tmp_path / "right", keep_undo=rdc.KeepUndo(days=1), progress=seen.append)
    (tmp_path / "right/new").unlink()
    rdc.unite(tmp_path / "left", tmp_path / "right", progress=seen.append)
    rdc.undo(tmp_path / "right", progress=seen.append)
    whole = {event.phase: (event.done, event.total) for event in seen}
    assert whole["transfer"] == (3 << 20, 3 << 20) and whole["delete"] == (1, 1)
    assert whole["undo"][0] == whole["undo"][1]
    grow(seen)


def test_other_events_pass() -> None:
    seen: list[rdc.Event] = []
    plan = rdc.PlanKnown(1, 2, 3)
    reporting("sync", seen.append, None)(plan)
    assert seen == [plan]
    assert reporting("sync", silent, None) is silent


def test_a_sync_ends_at_its_total(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    numbers = random.Random(1)
    for number in range(8):
        (tmp_path / "a" / str(number)).write_bytes(numbers.randbytes(1 << 20))
    seen: list[rdc.Progressed] = []
    rdc.sync(tmp_path / "a", tmp_path / "b", progress=seen.append, catalog=None)
    grow(seen)
    assert seen[-1].done == seen[-1].total == 8 << 20


def test_a_watch_begins_again_in_each_turn(tmp_path: Path) -> None:
    """The second turn, whose file is smaller, has progress of its own."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/large").write_bytes(b"x" * 3_000_000)
    seen: list[list[rdc.Progressed]] = [[]]
    stop = threading.Event()

    def reporter(event: object, /) -> None:
        if not isinstance(event, rdc.InStep):
            return
        if len(seen) == 2:
            stop.set()
        seen.append([])
        (tmp_path / "src/small").write_bytes(b"y" * 2_000_000)

    def progress(event: rdc.Progressed) -> None:
        seen[-1].append(event)

    rdc.watch(
        f"{tmp_path}/src/",
        f"{tmp_path}/copy/",
        reporter=reporter,
        progress=progress,
        catalog=None,
        stop=stop,
    )
    assert [event.total for event in seen[0] if event.phase == "transfer"][-1] == 3_000_000
    assert [event.total for event in seen[1] if event.phase == "transfer"][-1] == 2_000_000


def test_dedupe_has_progress(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"the same" * 100_000)
    seen: list[rdc.Progressed] = []
    rdc.dedupe(tmp_path, hardlink=True, catalog=None, progress=seen.append)
    assert {event.phase for event in seen} >= {"compare"}
