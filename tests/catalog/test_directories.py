"""The catalog in directories that cannot be written or made, on a full disk, and of another user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.catalog.database import FILE_NAME
from tests.catalog.catalog_checks import COUNT, as_nobody, check, child, copied, filled
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.started_processes import started


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
    # A directory named by the user is created, wherever it is.
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
    """A limit on file sizes simulates a full disk: writes beyond it fail within a transaction."""
    with started(child(tmp_path / "c", contents[0], f"0-{COUNT}", 10, str(64 << 10))) as process:
        out, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, err) == (0, b"")
    lost = int(out.split()[-1])
    assert 0 < lost < COUNT
    known, notices = check(tmp_path / "c", *contents)
    assert notices == []
    assert known > 0
    assert check(tmp_path / "c", *contents)[0] == COUNT
