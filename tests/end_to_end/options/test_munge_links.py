"""--munge-links, beside rsync's: at the side where it is typed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.limits import SMALL_MANIFEST
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import PSEUDO_SSH, Way, command, run_sync

LINKS = {
    b"plain": b"target",
    b"munged": b"/rsyncd-munged/target",
    b"twice": b"/rsyncd-munged//rsyncd-munged/../x",
    b"absolute": b"/etc/passwd",
    b"prefix": b"/rsyncd-munged/",
}
OPTIONS = SyncOptions(munge_links=True, fsync=False)


def linked(top: Path, *, many: bool = False) -> Path:
    top.mkdir()
    for name, target in LINKS.items():
        os.symlink(target, os.path.join(os.fsencode(top), name))
    for number in range(SMALL_MANIFEST if many else 0):
        (top / f"f{number}").touch()
    return top


def targets(top: Path) -> dict[bytes, bytes]:
    found = os.fsencode(top)
    return {name: os.readlink(os.path.join(found, name)) for name in os.listdir(found) if name in LINKS}


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_each_side_does_its_part(way: Way, many: bool, tmp_path: Path) -> None:
    source, top, peer = linked(tmp_path / "s", many=many), tmp_path / "d", tmp_path / "p"
    far, near = (f"{source}/", f"{peer}/")
    words = [f"far:{far}", near] if way is Way.PULL else [far, f"far:{near}" if way is Way.PUSH else near]
    subprocess.run(["rsync", "-a", "--munge-links", "-e", str(PSEUDO_SSH), *words], check=True)
    run_sync(source, top, OPTIONS, way=way)
    assert targets(top) == targets(peer)
    assert (targets(top)[b"plain"] == b"target") is (way is not Way.PULL)
    again = run_sync(source, top, OPTIONS, way=way)
    assert (again.items, again.problems) == ([], [])


def test_there_and_back(tmp_path: Path) -> None:
    source, munged, back = linked(tmp_path / "s"), tmp_path / "m", tmp_path / "b"
    run_sync(source, munged, OPTIONS, way=Way.PULL)
    assert all(target.startswith(b"/rsyncd-munged/") for target in targets(munged).values())
    run_sync(munged, back, OPTIONS)
    assert targets(back) == targets(source)


def test_links_that_are_not_munged_become_so(tmp_path: Path) -> None:
    source, top = linked(tmp_path / "s"), linked(tmp_path / "d")
    run = run_sync(source, top, OPTIONS, way=Way.PULL)
    # The directories were made at the same moment, or not.
    assert {item.split()[1] for item in run.items} - {"./"} == set(map(os.fsdecode, LINKS))
    assert targets(top)[b"plain"] == b"/rsyncd-munged/target"


@pytest.mark.parametrize("name", ["--safe-links", "-L", "-k", "--copy-unsafe-links"])
def test_what_cannot_be_combined_is_refused(name: str, tmp_path: Path) -> None:
    ended = command("sync", "--munge-links", name, f"{tmp_path}/", tmp_path.parent / "none")
    assert (ended.code, len(ended.complaints)) == (ExitCode.USAGE, 1)


def test_several_sources(tmp_path: Path) -> None:
    source, other = linked(tmp_path / "s"), tmp_path / "o"
    other.mkdir()
    ended = command("sync", "--munge-links", f"{source}/", f"{other}/", tmp_path / "d")
    assert ended.code == 0
    assert targets(tmp_path / "d")[b"munged"] == b"target"
