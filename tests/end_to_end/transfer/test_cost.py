"""Cost is a result: bytes on the wire, bytes of content, memory; and the numbers shown are the true ones."""

from __future__ import annotations

import filecmp
import os
import random
from pathlib import Path

import pytest

from rdc.limits import DATA_BYTES
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import run_sync
from tests.support.trees.big_file import MIB, make_versions, sync_measured
from tests.support.trees.trees import File, Tree, describe, read_tree, tree, write_tree


def blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


MIXED = tree(
    {"random": blob(1, 700_000), "text": b"all work and no play\n" * 20_000, "empty": b"", "d/small": b"s"}
)
OLDER = tree({"random": File(blob(1, 300_000) + blob(2, 10) + blob(1, 700_000)[300_000:], 0o644, 1)})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
@pytest.mark.parametrize("words", [[], ["--no-compress"], ["-c"], ["-n"]], ids=" ".join)
@pytest.mark.parametrize("held", [tree(), OLDER, MIXED], ids=["empty", "older", "equal"])
def test_the_counts_are_what_crossed_the_pipe(
    held: Tree, words: list[str], pull: bool, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "source", MIXED)
    destination = write_tree(tmp_path / "destination", held)
    cost = sync_measured(source, destination, *words, pull=pull)
    assert (cost.summary["bytes_sent"], cost.summary["bytes_received"]) == (cost.up, cost.down)
    assert sum(cost.summary["bytes_by_purpose"].values()) == cost.wire
    assert cost.summary["bytes_by_purpose"]["overhead"] < 600


@pytest.mark.parametrize(("size", "pull"), [(64 * MIB, True), (1024 * MIB, False)], ids=["64 MiB", "1 GiB"])
def test_ten_edits_of_a_big_file(size: int, pull: bool, tmp_path: Path) -> None:
    """The cost is that of the edits, and of the way to the chunks they lie in."""
    source, destination = make_versions(tmp_path, size, edits=10, edit_bytes=100)
    cost = sync_measured(source, destination, pull=pull)
    assert filecmp.cmp(source / "file", destination / "file", shallow=False)
    for place in (source, destination):
        (place / "file").unlink()  # pytest keeps what is left
    assert cost.wire <= 12_000, cost
    assert cost.summary["literal_bytes"] + cost.summary["reused_bytes"] == size
    assert max(cost.near_memory, cost.far_memory) <= 150 * 10**6, cost
    assert cost.summary["round_trips"] <= 10


@pytest.mark.parametrize("dialler", list(Role), ids=["source dials", "destination dials"])
@pytest.mark.parametrize("size", [300, 5_000, 2_400_000])
def test_one_edited_file_among_thousands(size: int, dialler: Role, tmp_path: Path) -> None:
    value = tree({f"d{i}/f{j}": b"content" for i in range(30) for j in range(50)})
    content = b" ".join(b"%x" % n for n in random.Random(size).choices(range(1 << 40), k=size // 11))
    edited = content[: len(content) // 2] + b"edit" + content[len(content) // 2 :]
    source = write_tree(tmp_path / "source", value | tree({"d20/edited": edited}))
    destination = write_tree(tmp_path / "destination", value | tree({"d20/edited": File(content, 0o644, 1)}))
    run = sync_in_turns(source, destination, dialler=dialler)
    assert (destination / "d20" / "edited").read_bytes() == edited
    assert run.done.bytes_sent + run.done.bytes_received <= 3_000
    assert run.done.round_trips <= 8


def test_five_thousand_edited_files_take_no_more_round_trips(tmp_path: Path) -> None:
    old = {f"d{i}/f{j}": blob(100 * i + j, 700) + b"text " * 120 for i in range(50) for j in range(100)}
    source = write_tree(tmp_path / "source", tree({n: c[:900] + b"!" + c[900:] for n, c in old.items()}))
    destination = write_tree(tmp_path / "destination", tree({n: File(c, 0o644, 1) for n, c in old.items()}))
    run = sync_in_turns(source, destination)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert run.done.round_trips <= 10
    assert run.done.bytes_sent + run.done.bytes_received <= 5_000 * 200


@pytest.mark.usefixtures("fewest_bytes")
def test_shifted_content_is_found(tmp_path: Path) -> None:
    """Bytes put in at the front move everything behind them; nothing of that is sent."""
    body = blob(3, 2 * MIB)
    source = write_tree(tmp_path / "source", tree({"f": b"a few more bytes" + body}))
    destination = write_tree(tmp_path / "destination", tree({"f": File(body, 0o644, 1)}))
    report = run_sync(source, destination).done
    assert report.literal_bytes <= 2 * 26_000
    assert report.literal_bytes + report.reused_bytes == 2 * MIB + 16


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize(
    "parts",
    [
        [(b"\0", 8 * MIB)],
        [(b"ab", 4 * MIB)],
        [(blob(4, 40_000), 200)],
        [(b"\xff", 4 * MIB), (b"\0", 4 * MIB)],
    ],
    ids=["zeros", "a short period", "a long period", "two runs"],
)
def test_runs_and_periods_cost_next_to_nothing(parts: list[tuple[bytes, int]], tmp_path: Path) -> None:
    content = b"".join([part * times for part, times in parts])
    source = write_tree(tmp_path / "source", tree({"f": content}))
    held = content[: MIB - 5] + b"-" + content[: 3 * MIB]
    destination = write_tree(tmp_path / "destination", tree({"f": File(held, 0o644, 1)}))
    report = run_sync(source, destination).done
    assert (destination / "f").read_bytes() == content
    assert report.bytes_received < 200_000
    assert describe(read_tree(source), read_tree(destination)) == []


def test_metadata_and_touched_files_send_no_content(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({f"d{i}/f": blob(i, 50_000) for i in range(20)}))
    destination = tmp_path / "destination"
    assert run_sync(source, destination).done.literal_bytes == 20 * 50_000
    for i in range(0, 20, 2):
        os.utime(source / f"d{i}" / "f", ns=(5, 7 + i))
        (source / f"d{i + 1}" / "f").chmod(0o600)
    touched = run_sync(source, destination).done
    assert (touched.changed, touched.literal_bytes) == (20, 0)
    assert touched.bytes_received < 10_000
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.usefixtures("fewest_bytes")
def test_touched_files_are_compared_by_short_references(tmp_path: Path) -> None:
    """Other mtimes everywhere, one file edited: the equal ones cost some bytes each, and no tree."""
    contents = {f"d{i}/f{j}": blob(100 * i + j, 3_000) for i in range(20) for j in range(60)}
    source = write_tree(tmp_path / "source", tree(contents))
    edited = {**contents, "d7/f7": contents["d7/f7"][:1500] + b"!" + contents["d7/f7"][1501:]}
    destination = write_tree(
        tmp_path / "destination", tree({name: File(held, 0o644, 5) for name, held in edited.items()})
    )
    report = run_sync(source, destination).done
    assert describe(read_tree(source), read_tree(destination)) == []
    assert report.literal_bytes <= 128
    assert {cost.name: cost.count for cost in report.by_kind}["TreeAnswer"] == 1
    assert (report.bytes_sent + report.bytes_received) / 1200 <= 64
    assert report.round_trips <= 10


@pytest.mark.usefixtures("fewest_bytes")
def test_touched_files_of_a_small_tree_come_without_trees(tmp_path: Path) -> None:
    """However the listing of their directories arrives: of 130 files, one of which is another, one tree."""
    contents = {f"d{i}/f{j}": blob(100 * i + j, 30_000) for i in range(13) for j in range(10)}
    source = write_tree(tmp_path / "source", tree(contents))
    edited = {**contents, "d12/f9": contents["d12/f9"][:1500] + b"!" + contents["d12/f9"][1501:]}
    destination = write_tree(
        tmp_path / "destination", tree({name: File(held, 0o644, 5) for name, held in edited.items()})
    )
    run = sync_in_turns(source, destination, dialler=Role.SOURCE)
    assert describe(read_tree(source), read_tree(destination)) == []
    assert {cost.name: cost.count for cost in run.done.by_kind}["TreeAnswer"] == 1
    assert run.done.bytes_sent + run.done.bytes_received <= 130 * 20
    assert run.done.round_trips <= 10


def test_a_second_run_costs_the_listing_and_no_more(tmp_path: Path) -> None:
    source = write_tree(
        tmp_path / "source", tree({f"d{i}/f{j}": blob(i, 100) for i in range(20) for j in range(20)})
    )
    destination = tmp_path / "destination"
    first = run_sync(source, destination, SyncOptions(fsync=False)).done
    second = run_sync(source, destination).done
    assert (first.changed, second.changed, second.literal_bytes, second.reused_bytes) == (421, 0, 0, 0)
    assert second.round_trips <= 4
    assert second.bytes_sent + second.bytes_received <= 421 * 40


def test_small_directories_share_requests_and_messages(tmp_path: Path) -> None:
    """A listing that goes on keeps no file waiting longer than it takes to fill a message of contents."""
    few = 2 * [b"content"]
    value = {f"d{i}/f{j}": content for i in range(400) for j, content in enumerate(few)}
    large = {f"m{i}/large": blob(i, DATA_BYTES) for i in range(3)}
    source = write_tree(tmp_path / "source", tree(value | large))
    destination = write_tree(tmp_path / "destination", tree())
    run = sync_in_turns(source, destination)
    assert describe(read_tree(source), read_tree(destination)) == []
    counts = {cost.name: cost.count for cost in run.done.by_kind}
    assert counts["FileBatch"] <= 2
    assert len(large) <= counts["FileRequest"] <= len(large) + 2
