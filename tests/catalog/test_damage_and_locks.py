"""The catalog beside other processes, after kills, and damaged: no wrong answer, and no error for the job."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.database import FILE_NAME, Database
from rdc.catalog.signer import FileSigner
from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from tests.catalog.catalog_checks import COUNT, check, child, filled, is_sound
from tests.support.children.catalog_child import later
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.started_processes import started

# Other processes


def test_processes_write_at_the_same_time(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    """Each process writes files of its own and files that others write too. The first one creates the
    database."""
    parts = ("0-150", "100-250", "150-300", "0-300")
    with ExitStack() as stack:
        children = [
            stack.enter_context(started(child(tmp_path / "c", contents[0], part, 7))) for part in parts
        ]
        for process in children:
            out, err = process.communicate(timeout=WAIT_SECONDS)
            assert (process.returncode, err) == (0, b"")
            assert (out.split()[0], out.split()[-1]) == (b"ready", b"0")
    assert is_sound(tmp_path / "c" / FILE_NAME)
    assert check(tmp_path / "c", *contents) == (COUNT, [])


def test_a_kill_costs_at_most_what_was_not_written(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    rng = random.Random(2)
    before = 0
    for turn in range(8):
        with started(child(tmp_path / "c", contents[0], f"0-{COUNT}", 2)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            for _ in range(rng.randrange(turn, 18 * turn + 2)):
                assert process.stdout.readline() == b"flushed\n"
            time.sleep(rng.random() * 0.01)  # off the beat of the reports
            process.kill()
        with Catalog(tmp_path / "c", clock=later) as catalog:
            found = catalog.database.read(lambda c: c.execute("SELECT count(*) FROM signature").fetchone()[0])
            assert catalog.take_notices() == []
        assert (found or 0) >= before
        before = found or 0
    assert before > 0
    assert is_sound(tmp_path / "c" / FILE_NAME)
    assert check(tmp_path / "c", *contents) == (before, [])


def test_a_lock_that_is_never_given_back_stops_nobody(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    path = filled(tmp_path / "c", contents)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    catalog = Catalog(tmp_path / "c", clock=later)
    catalog.database._busy_seconds = 0.01
    root = Root.open(os.fsencode(contents[0]))
    with root.open_read(b"3") as source:
        assert catalog.root(source, SYNC_PARAMS) == contents[1][3]  # readers do not wait
        FileSigner(catalog=catalog).read(source)
        catalog.flush()
        assert catalog.lost == 1
        other.execute("ROLLBACK")
        FileSigner(catalog=catalog).read(source)
        catalog.flush()  # and it goes on once the lock is free
        assert catalog.lost == 1
    other.close()
    catalog.close()
    assert catalog.take_notices() == []


# Damage


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(60))
def test_damage_never_makes_a_wrong_answer(
    tmp_path: Path, contents: tuple[Path, list[bytes]], seed: int
) -> None:
    rng = random.Random(seed)
    path = filled(tmp_path / "c", contents)
    data = bytearray(path.read_bytes())
    if seed % 4 == 3:
        # In the texts of the schema, which sqlite3 reads before anything else, and quotes in its messages.
        schema = data.index(b"CREATE TABLE signature")
        for _ in range(rng.choice((1, 2, 20))):
            data[schema + rng.randrange(400)] = rng.randrange(256)
    elif seed % 3 == 0:
        del data[rng.randrange(len(data)) :]
    elif seed % 3 == 1:
        for _ in range(rng.choice((1, 10, 300))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    else:
        at = rng.randrange(len(data)) & ~4095
        data[at : at + 4096] = rng.randbytes(4096)
    path.write_bytes(data)
    runs = [check(tmp_path / "c", *contents) for _ in range(3)]
    # Damage that nobody reads does no harm, and damage in use is moved aside, in whichever run reads it. The
    # rows of that run then begin a new file, so one more run knows all.
    while runs[-1][1]:
        runs.append(check(tmp_path / "c", *contents))
    known, notices = check(tmp_path / "c", *contents)
    assert known >= COUNT - 10
    assert notices == []
    assert sum(bool(notices) for _, notices in runs) <= 1


def test_a_damaged_file_is_kept_aside_and_said_once(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    path = filled(tmp_path / "c", contents)
    path.write_bytes(b"no database at all" * 1000)
    known, notices = check(tmp_path / "c", *contents)
    assert known == 0
    assert len(notices) == 1
    assert "damaged" in notices[0]
    assert (tmp_path / "c" / (FILE_NAME + ".damaged")).read_bytes().startswith(b"no database")
    assert check(tmp_path / "c", *contents) == (COUNT, [])


def test_a_damaged_log_is_no_reason_to_fail(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    path = filled(tmp_path / "c", contents)
    for suffix in ("-wal", "-shm"):
        path.with_name(FILE_NAME + suffix).write_bytes(os.urandom(50_000))
        check(tmp_path / "c", *contents)
        assert check(tmp_path / "c", *contents)[0] == COUNT


def test_two_that_meet_the_same_damage_move_one_file(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    path = filled(tmp_path / "c", contents)

    def insert(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO settled (key) VALUES (hex(randomblob(9)))")

    first, second = Database(tmp_path / "c"), Database(tmp_path / "c")
    for database in (first, second):
        assert database.read(lambda c: c.execute("SELECT count(*) FROM signature").fetchone()) == (COUNT,)
    with path.open("r+b") as file:
        file.write(b"\0" * 100)
    for database in (first, second):
        database.close()
        database._connection = None
        assert database.write(insert)
    # The second process found the new file of the first and left it in place.
    assert first.read(lambda c: c.execute("SELECT count(*) FROM settled").fetchone()) == (2,)
    assert [len(d.notices) for d in (first, second)] == [1, 0]
    first.close()
    second.close()


@pytest.mark.parametrize("what", ["another program's", "a newer rdc's"])
def test_what_is_not_ours_is_left_alone(
    tmp_path: Path, contents: tuple[Path, list[bytes]], what: str
) -> None:
    (tmp_path / "c").mkdir()
    path = tmp_path / "c" / FILE_NAME
    if what == "another program's":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (x)")
    else:
        filled(tmp_path / "c", contents)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    known, notices = check(tmp_path / "c", *contents)
    assert known == 0
    assert len(notices) == 1
    assert "not used as catalog" in notices[0]
    assert path.read_bytes() == before
