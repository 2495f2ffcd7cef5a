"""What the catalog makes of other processes, kills, damage, and disks that take nothing: never a wrong
answer, never an error to the job."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rdc.catalog.catalog import Catalog
from rdc.catalog.database import FILE_NAME, Database
from rdc.catalog.signer import FileSigner
from rdc.catalog.upkeep import prune, summary
from rdc.chunking.params import SYNC_PARAMS
from rdc.files.confined import Root
from rdc.signature.build import sign
from tests.catalog_child import later
from tests.daemons import WAIT_SECONDS
from tests.started import started

COUNT = 300


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """COUNT files, named by their numbers, and the roots that they have."""
    directory = tmp_path_factory.mktemp("files")
    rng = random.Random(1)
    roots = []
    for i in range(COUNT):
        data = rng.randbytes(rng.choice((0, 100, 3000, 60_000)))
        (directory / str(i)).write_bytes(data)
        roots.append(sign(data, SYNC_PARAMS).root)
    return directory, roots


def child(cache: Path, files: Path, names: str, every: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.catalog_child", str(cache), str(files), names, str(every), *more]


def check(cache: Path, files: Path, roots: list[bytes], **kwargs: Any) -> tuple[int, list[str]]:
    """Signs everything with this catalog; how many it knew, and what it had to say."""
    known = 0
    root = Root.open(os.fsencode(files))
    catalog = Catalog(cache, clock=later, **kwargs)
    signer = FileSigner(catalog=catalog, workers=1)
    for i, expected in enumerate(roots):
        with root.open_read(b"%d" % i) as source:
            known += catalog.root(source, SYNC_PARAMS) is not None
            tree = signer.sign(source)
            assert tree.root == expected
            assert tree.size == source.size
    catalog.close()
    root.close()
    return known, catalog.take_notices()


def filled(cache: Path, contents: tuple[Path, list[bytes]]) -> Path:
    """A catalog that knows everything, closed; its file."""
    check(cache, *contents)
    assert check(cache, *contents) == (COUNT, [])
    return cache / FILE_NAME


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


# Other processes


def test_processes_write_at_the_same_time(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    """Each a part of its own and a part that others write too; the first of them makes the file."""
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


@pytest.mark.parametrize("seed", range(24))
def test_damage_never_makes_a_wrong_answer(
    tmp_path: Path, contents: tuple[Path, list[bytes]], seed: int
) -> None:
    rng = random.Random(seed)
    path = filled(tmp_path / "c", contents)
    data = bytearray(path.read_bytes())
    if seed % 3 == 0:
        del data[rng.randrange(len(data)) :]
    elif seed % 3 == 1:
        for _ in range(rng.choice((1, 10, 300))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    else:
        at = rng.randrange(len(data)) & ~4095
        data[at : at + 4096] = rng.randbytes(4096)
    path.write_bytes(data)
    for _ in range(3):
        check(tmp_path / "c", *contents)
    # Whatever it was, it is over: damage in use was moved aside, damage nobody saw harms nobody.
    known, notices = check(tmp_path / "c", *contents)
    assert known >= COUNT - 10
    assert notices == []


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
    # The second found the first one's new file, and left it where it was.
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


# Places that take nothing


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A directory of a user to whom permissions mean something, and this process as that user."""
    directory = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(directory, 65534, 65534)
            os.seteuid(65534)
        yield directory
    finally:
        if root:
            os.seteuid(0)
        for name in (directory, *directory.iterdir()):
            name.chmod(0o700)
        shutil.rmtree(directory)


def copied(contents: tuple[Path, list[bytes]], directory: Path) -> tuple[Path, list[bytes]]:
    files = directory / "files"
    files.mkdir()
    rng = random.Random(1)
    for i in range(20):
        (files / str(i)).write_bytes(rng.randbytes(rng.choice((0, 100, 3000, 60_000))))
    return files, contents[1][:20]


def test_a_directory_that_cannot_be_written_is_read(contents: tuple[Path, list[bytes]]) -> None:
    with as_nobody() as directory:
        some = copied(contents, directory)
        check(directory / "c", *some)
        (directory / "c").chmod(0o500)
        try:
            assert check(directory / "c", *some) == (20, [])
            (directory / "c" / FILE_NAME).chmod(0o400)
            assert check(directory / "c", *some) == (20, [])
            (directory / "c" / FILE_NAME).chmod(0)
            known, (notice,) = check(directory / "c", *some)
            assert known == 0
            assert notice == f"{directory}/c/{FILE_NAME}: not used as catalog: unable to open database file"
        finally:
            (directory / "c").chmod(0o700)


def test_a_directory_that_cannot_be_made_is_done_without(contents: tuple[Path, list[bytes]]) -> None:
    with as_nobody() as directory:
        some = copied(contents, directory)
        (directory / "no").mkdir(mode=0o500)
        (directory / "file").write_bytes(b"")
        for place, why in (
            ("no/c", "Permission denied"),
            ("file", "Not a directory"),
            ("file/c", "Not a dir"),
        ):
            known, (notice,) = check(directory / place, *some)
            assert known == 0
            assert notice.startswith(f"{directory}/{place}/{FILE_NAME}: not used as catalog: {why}")


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    some = contents[0], contents[1][:20]
    cache = tmp_path / "home" / ".cache" / "rdc"
    _, (notice,) = check(cache, *some, parents=False)
    assert notice == f"{cache}/{FILE_NAME}: not used as catalog: there is no directory {tmp_path}/home"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "home").mkdir()
    assert check(cache, *some, parents=False) == (0, [])
    assert check(cache, *some, parents=False) == (20, [])
    assert [path.stat().st_mode & 0o777 for path in (cache.parent, cache)] == [0o700, 0o700]
    # A place that somebody names is made, wherever it is.
    assert check(tmp_path / "a" / "b" / "c", *some) == (0, [])
    assert check(tmp_path / "a" / "b" / "c", *some) == (20, [])


def test_a_catalog_of_somebody_else_is_not_used(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    if os.geteuid() != 0:
        pytest.fail("this test gives files away and needs root")
    path = filled(tmp_path / "c", contents)
    os.chown(path, 65534, 65534)
    known, notices = check(tmp_path / "c", *contents)
    assert known == 0
    assert "belongs to user 65534" in notices[0]


def test_a_full_disk_costs_entries_and_nothing_else(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    """A limit on file sizes stands in for the disk: writes past it fail in the middle of a transaction."""
    with started(child(tmp_path / "c", contents[0], f"0-{COUNT}", 10, str(64 << 10))) as process:
        out, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, err) == (0, b"")
    lost = int(out.split()[-1])
    assert 0 < lost < COUNT
    known, notices = check(tmp_path / "c", *contents)
    assert notices == []
    assert known > 0
    assert check(tmp_path / "c", *contents)[0] == COUNT


# The cap


def test_what_was_used_longest_ago_goes_first(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    cap = 60 << 10
    day = 86_400_000_000_000
    root = Root.open(os.fsencode(contents[0]))

    def known(names: range, days: int, *, sign_too: bool = True) -> int:
        found = 0
        with Catalog(tmp_path / "c", clock=lambda: later() + days * day, max_bytes=cap) as catalog:
            for i in names:
                with root.open_read(b"%d" % i) as source:
                    found += catalog.root(source, SYNC_PARAMS) is not None
                    if sign_too:
                        FileSigner(catalog=catalog, workers=1).sign(source)
        return found

    assert known(range(20), 0) == 0
    assert known(range(20, 40), 1) == 0
    assert known(range(20), 2) == 20  # the older ones are used again
    lost: list[tuple[int, int]] = []
    for days in range(3, 200):
        known(range(40 + days, 41 + days), days)
        assert (tmp_path / "c" / FILE_NAME).stat().st_size <= cap + (32 << 10)
        # Asked with a clock that counts as no use.
        lost.append((20 - known(range(20), 2, sign_too=False), 20 - known(range(20, 40), 1, sign_too=False)))
        if lost[-1][0]:
            break
    assert 0 < lost[-1][0] < 20
    assert lost[-1][1] == 20
    root.close()


def test_pruning_survives_damaged_rows(tmp_path: Path, contents: tuple[Path, list[bytes]]) -> None:
    path = filled(tmp_path / "c", contents)
    connection = sqlite3.connect(path)
    for column, value in (
        ("path", 7),
        ("path", b"a\0b"),
        ("used", "x"),
        ("size", b"y"),
        ("root", 1),
        ("value", 2),
    ):
        any_row = "(SELECT id FROM signature ORDER BY random() LIMIT 1)"
        connection.execute(f"UPDATE signature SET {column} = ? WHERE id = {any_row}", (value,))  # noqa: S608
    connection.commit()
    connection.close()
    check(tmp_path / "c", *contents)
    with Catalog(tmp_path / "c", clock=later) as catalog:
        assert summary(catalog) is not None
        pruned = prune(catalog, unused_days=100, max_bytes=50_000)
        assert pruned.gone <= 2
        assert pruned.evicted > 100
    assert path.stat().st_size <= 60_000
    assert check(tmp_path / "c", *contents)[0] < COUNT
    assert is_sound(path)


def test_what_lies_on_a_disk_that_is_not_there_is_not_gone(
    tmp_path: Path, contents: tuple[Path, list[bytes]]
) -> None:
    path = filled(tmp_path / "c", contents)
    connection = sqlite3.connect(path)
    # As if they had been signed on another volume, mounted where nothing is now.
    connection.execute("UPDATE signature SET path = CAST('/no/such/place/' || id AS BLOB)")
    connection.execute("UPDATE signature SET file_system = 1 WHERE id % 2")
    connection.commit()
    connection.close()
    with Catalog(tmp_path / "c", clock=later) as catalog:
        gone = prune(catalog, unused_days=100).gone
    above = os.statvfs("/").f_fsid == os.statvfs(contents[0]).f_fsid
    assert gone == (COUNT // 2 if above else 0)
