"""Real programs write to the files that are deduplicated: none of their bytes may be lost."""

from __future__ import annotations

import hashlib
import os
import time
from functools import partial
from itertools import count
from pathlib import Path

from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.deduping import TIME, blob, dedupe
from tests.support.running.killed_dedupe import leftovers
from tests.support.share import examples
from tests.support.trees.racing_writer import Marks, Writer, keep_account, mark_files

SIZE = 150_000


def write_group(place: Path, names: list[str]) -> None:
    for name in names:
        (place / name).write_bytes(blob(7, SIZE))
        (place / name).chmod(0o644)
        os.utime(place / name, ns=(TIME, TIME))


def check_marks(place: Path, marks: Marks, names: list[str]) -> None:
    for name, appended in marks.appended.items():
        content = (place / name).read_bytes()
        assert all(mark in content[SIZE:] for mark in appended), (name, appended)
    for name, mark in marks.slots.items():
        slot = names.index(name) * 16
        assert (place / name).read_bytes()[slot : slot + 16] == mark, name
    # Content that was not written to is complete, whatever happened to its duplicates.
    for name in names:
        content = (place / name).read_bytes()
        assert content[16 * len(names) : SIZE] == blob(7, SIZE)[16 * len(names) :], name


def test_writers_while_names_become_links(linking: Path) -> None:
    """In each round, a writer works on some of several equal files while all are linked."""
    names = [f"file{number}" for number in range(10)]
    links = late = 0
    for number in count():
        place = linking / f"round{number}"
        place.mkdir()
        write_group(place, names)
        # If dedupe starts slowly, writers start later from round to round.
        writer = Writer(partial(mark_files, place, names, number, 6, 0.002 * (1 + number // 40)))
        run = dedupe("--hardlink", "--apply", "--journal", linking / f"journal{number}", place)
        assert run.code in (0, 23, 24), run
        marks = writer.result()
        check_marks(place, marks, names)
        assert leftovers(place) == []
        links += len(run.of("item"))
        late += sum(error["code"] != 0 for error in run.of("error"))
        # Until links were made while writers were active.
        if number >= examples(39) and links > 30 and late > 5:
            break
        assert number < 400, (links, late)


def test_writers_while_blocks_become_shared(sharing: Path, tmp_path: Path) -> None:
    names = [f"file{number}" for number in range(12)]
    write_group(sharing, names)
    stop, began = tmp_path / "stop", time.monotonic()
    writers = [
        Writer(partial(keep_account, sharing, part, seed, stop, 50))
        for seed, part in enumerate((names[:4], names[4:8]))
    ]
    runs = shared = 0
    try:
        while time.monotonic() < began + 2 or not (runs > 2 and shared):
            run = dedupe("--apply", "--chunks", sharing)
            assert run.code in (0, 23, 24), run
            shared += sum(item["bytes"] for item in run.of("item"))
            runs += 1
            assert time.monotonic() < began + WAIT_SECONDS, (runs, shared)
    finally:
        stop.touch()
    for writer in writers:
        account = writer.result()
        for name, digest in account.digests.items():
            assert hashlib.sha256((sharing / name).read_bytes()).hexdigest() == digest, name
    for name in names[8:]:
        assert (sharing / name).read_bytes() == blob(7, SIZE)
