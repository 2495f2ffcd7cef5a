"""A store on a disk that keeps less than Linux promises: a stick with FAT, a share, NTFS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rdc
from rdc.store.place import link_new
from tests.support.storage.limited_cases import CASES, contents, write_source
from tests.support.storage.limited_mount import OddMount, odd_mounted

pytestmark = pytest.mark.needs("fuse")

LOCKLESS = {"flock", "all of it"}
"""Without locks two puts could not tell each other apart, and without them and links nothing is safe."""


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[OddMount]:
    with odd_mounted(tmp_path / "mount", tmp_path / "behind") as found:
        yield found


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", [name for name in CASES if name not in LOCKLESS])
def test_snapshots_are_put_verified_and_restored(name: str, mount: OddMount, tmp_path: Path) -> None:
    source, store = write_source(tmp_path / "source"), mount.point / "st"
    mount.become(CASES[name])
    rdc.store_put(f"{source}/", store, catalog=None)
    old = contents(source)
    (source / "big").write_bytes((source / "big").read_bytes() + b"more")
    rdc.store_put(f"{source}/", store, catalog=None)
    assert [snapshot.number for snapshot in rdc.snapshots(store)] == [1, 2]
    assert rdc.verify_store(store, 1.0).exit == 0
    for number, wanted in ((1, old), (2, contents(source))):
        back = tmp_path / f"back{number}"
        rdc.sync(f"{store}/@{number}/", back, catalog=None)
        assert contents(back) == wanted


@pytest.mark.parametrize("name", ["nothing odd", "FAT", "no links, EPERM", "rename open, EBUSY"])
def test_a_name_is_given_once(name: str, mount: OddMount) -> None:
    mount.become(CASES[name])
    top = mount.point / "d"
    top.mkdir()
    place = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        link_new(b"first", b"name", place)
        with pytest.raises(FileExistsError):
            link_new(b"second", b"name", place)
    finally:
        os.close(place)
    assert (top / "name").read_bytes() == b"first"
    assert [path.name for path in top.iterdir()] == ["name"]
