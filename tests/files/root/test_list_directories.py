"""Runs of directories in one call: the same as one after the other, whatever ends a run."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files import _files
from rdc.files.base.paths import join, temporary_name
from rdc.files.depth import Depths
from rdc.files.root import lister
from rdc.files.root.lister import RUN_DIRECTORIES, RUN_PATH_BYTES, RUN_PATHS, RUN_ROWS, RUN_SLOW, Run
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.limits import DIRECTORY_BYTES, PATH_DEPTH
from rdc.model.entries import Kind, Listed
from rdc.tree.manifest import Manifest
from tests.files.root.listings import in_python_many, make, names, opened
from tests.support.project_paths import TOP
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors


def in_c(top: int, todo: list[bytes], limit: int = DIRECTORY_BYTES) -> Run:
    run = lister.list_directories(top, todo, limit=limit)
    assert run is not None
    return run


def columns(found: list[tuple[bytes, Listed]]) -> Manifest:
    manifest = Manifest()
    for path, listed in found:
        manifest.add(path, listed.listing)
    return manifest


def agree(top: int, todo: list[bytes]) -> Run:
    found, left, alone, failed = in_python_many(top, todo)
    run = in_c(top, todo)
    assert (run.todo, run.alone, run.failed) == (left, alone, failed)
    assert run.looked == run.directories.walked + (alone is not None) == len(found) + (alone is not None)
    one, many = columns(found), Manifest()
    many.add_many(run.directories)
    for name in ("text", "kinds", "modes", "sizes", "mtimes", "uids", "gids", "targets", "directories"):
        assert getattr(many, name) == getattr(one, name)
    assert (many.firsts, many.texts, many.links) == (one.firsts, one.texts, one.links)
    assert run.directories.listing.names == b"".join(listed.listing.names for _, listed in found)
    for name in ("devices", "inodes", "links", "allocated", "ctimes"):
        assert getattr(run.directories.inodes, name) == b"".join(
            getattr(listed.inodes, name) for _, listed in found
        )
    return run


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_a_run_is_what_its_directories_are(data: st.DataObject) -> None:
    before = open_descriptors()
    with tempfile.TemporaryDirectory() as place, opened(os.fsencode(place)) as top:
        made = [b""]
        for turn in range(data.draw(st.integers(0, 25))):
            above = data.draw(st.sampled_from(made))
            kind = data.draw(
                st.sampled_from([Kind.FILE, Kind.DIRECTORY, Kind.DIRECTORY, Kind.SYMLINK, Kind.SPECIAL])
            )
            path = join(above, data.draw(names))
            where = os.path.join(os.fsencode(place), path)
            if os.path.lexists(where):
                continue
            make(where, kind, turn)
            if kind == Kind.DIRECTORY:
                os.chmod(where, 0o700)
                made.append(path)
            elif kind == Kind.FILE and data.draw(st.integers(0, 20)) == 0:
                os.utime(where, (0, -(1 << 33)))
        odd = st.sampled_from([b"none", b"../up", b"a//b", b".", b"x" * 300, b"y/" * RUN_PATH_BYTES + b"y"])
        todo = data.draw(st.lists(st.sampled_from(made) | odd, max_size=5))
        agree(top, todo)
    assert open_descriptors() == before


def test_a_run_ends_at_each_of_its_bounds(tmp_path: Path) -> None:
    for number in range(RUN_DIRECTORIES + 6):
        (tmp_path / "many" / f"{number:03}").mkdir(parents=True)
    for number in range(RUN_ROWS + 1):
        (tmp_path / "many" / "007" / str(number)).mkdir(parents=True)
    for number in range(RUN_ROWS // 2 + 1):
        for place in "abc":
            (tmp_path / "half" / place / str(number)).mkdir(parents=True)
    with opened(os.fsencode(tmp_path)) as top:
        run = agree(top, [b"many/%03d" % number for number in range(8, RUN_DIRECTORIES + 6)][::-1])
        assert run.directories.walked == RUN_DIRECTORIES - 2
        run = agree(top, [b"many"])
        assert run.alone is not None
        assert run.alone[0] == b"many/007"
        assert run.directories.walked == 8
        (tmp_path / "many" / "007").rename(tmp_path / "elsewhere")
        run = agree(top, [b"many"])
        assert run.directories.walked == RUN_DIRECTORIES
        assert run.todo == [
            b"many/%03d" % number for number in range(RUN_DIRECTORIES + 5, RUN_DIRECTORIES - 1, -1)
        ]
        run = agree(top, [b"half/c", b"half/b", b"half/a"])
        assert run.directories.walked == RUN_DIRECTORIES
        long = [b"x" * 200 + b"/%d" % number for number in range(RUN_PATHS // 200)]
        assert agree(top, [*long, b"half/a"]).directories.walked == 0


def test_a_temporary_leaves_its_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    stale = temporary_name(b"x")
    (tmp_path / "a" / os.fsdecode(stale)).touch()
    with opened(os.fsencode(tmp_path)) as top:
        run = agree(top, [b""])
    assert run.alone is not None
    assert run.alone[1].reserved == (stale,)
    assert (run.directories.walked, run.todo) == (1, [b"c"])


def test_a_root_that_shows_something_else_lists_each_for_itself(tmp_path: Path) -> None:
    root = Root.open(os.fsencode(tmp_path))
    looking = Depths().looking
    assert root.list_many([b""], looking=looking) is not None
    for reads in (
        replace(root.reads, fakes=True),
        replace(root.reads, munges=True),
        replace(root.reads, unmunges=True),
        replace(root.reads, untimed=frozenset({Kind.SYMLINK})),
        replace(root.reads, only=b"x"),
    ):
        assert root.having(reads).list_many([b""], looking=looking) is None


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    with opened(os.fsencode(tmp_path)) as top:
        with pytest.raises(OSError, match="Invalid"):
            _files.list_directories(top, b"a", 1 << 20, 1, 1)
        with pytest.raises(ValueError, match="limit"):
            _files.list_directories(top, b"a\0", -1, 1, 1)
        assert in_c(top, []).directories.walked == 0
        (tmp_path / "f").touch()
        assert in_c(top, [b""], limit=10).failed


def test_the_numbers_of_the_header() -> None:
    header = (TOP / "rdc" / "files" / "root" / "read_directories.h").read_text()
    for name, number in {
        "RUN_DIRECTORIES": RUN_DIRECTORIES,
        "RUN_ROWS": RUN_ROWS,
        "RUN_SLOW": RUN_SLOW,
        "PATH_MOST": RUN_PATH_BYTES,
    }.items():
        assert re.findall(rf"RDC_{name} (\d+)", header) == [str(number)]
    assert f"RDC_RUN_PATHS (1 << {RUN_PATHS.bit_length() - 1})" in header
    assert RUN_PATH_BYTES <= PATH_DEPTH
