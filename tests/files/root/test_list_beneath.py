"""Listing a directory by its path, and the listings that fail."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode, FileError
from rdc.files import _files
from rdc.files.base.paths import temporary_name
from rdc.files.root import lister
from rdc.files.root.root import Root
from rdc.limits import NAME_BYTES, PATH_BYTES
from rdc.model.entries import BadCall, BadEntry, Kind, Listed
from tests.files.root.listings import in_c, in_python, make, opened
from tests.support.project_paths import NATIVE, TOP
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors


def test_reading_begins_at_the_beginning(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(10):
        make(top + b"/%d" % i, Kind.FILE, i)
    with opened(top) as fd:
        for reader in (in_c, in_c, in_python, in_c, in_python):
            assert reader(fd).listing.count == 10


@settings(deadline=None, max_examples=examples(30))
@given(st.dictionaries(st.sampled_from((b"a", b"b", b"c", b"\xff")), st.sampled_from(list(Kind)[:4])))
def test_a_directory_below_another_in_one_call(entries: dict[bytes, Kind]) -> None:
    with tempfile.TemporaryDirectory() as place:
        os.makedirs(os.path.join(place, "d", "e"))
        below = os.fsencode(os.path.join(place, "d", "e"))
        for name, kind in entries.items():
            path = os.path.join(below, name)
            if kind == Kind.DIRECTORY:
                os.mkdir(path)
            elif kind == Kind.SYMLINK:
                os.symlink(b"to", path)
            elif kind == Kind.SPECIAL:
                os.mkfifo(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        stale = temporary_name(b"x")
        os.close(os.open(os.path.join(below, stale), os.O_CREAT | os.O_WRONLY))
        with opened(os.fsencode(place)) as top, opened(below) as fd:
            for extension in (_files, None):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(lister, "_extension", extension)
                    found = lister.list_directory(top, b"d/e")
                    assert found == in_python(fd)
                    assert found.reserved == (stale,)


@pytest.mark.parametrize(
    "path",
    [b"../d", b"d/../d", b"/d", b"d//e", b"d/", b".", b"..", b"d\0/e", b"n" * (NAME_BYTES + 1), b"l", b"l/e"],
)
def test_a_path_that_leads_elsewhere_is_not_listed(path: bytes, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "l").symlink_to("d")
    before = open_descriptors()
    root = Root.open(os.fsencode(tmp_path))
    with pytest.raises(FileError):
        root.listed(path)
    with pytest.raises(FileError):
        root.list_unviewed(path)
    root.release()
    with opened(os.fsencode(tmp_path)) as top:
        for extension in (_files, None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lister, "_extension", extension)
                with pytest.raises((OSError, ValueError)):
                    lister.list_directory(top, path)
    assert open_descriptors() == before


def test_a_path_too_long_is_refused_by_name(tmp_path: Path) -> None:
    root = Root.open(os.fsencode(tmp_path))
    with pytest.raises(FileError, match="bytes \\(the limit is"):
        root.listed(b"a/" * PATH_BYTES + b"a")
    root.close()


def test_descriptors_and_memory_are_given_back(tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    for i in range(500):
        make(top + b"/%030d" % i, Kind.SYMLINK, 8)
    make(top + b"/" + temporary_name(b"f"), Kind.FILE, 0)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before_descriptors = open_descriptors()
    with opened(top) as fd:
        for turn in range(600):
            if turn == 100:
                before = resident()
            assert in_c(fd).listing.count == 500
            with suppress(OSError):
                in_c(fd, 100_000)
    # 500 readings of 4 MB of targets, and as many that failed half way.
    assert resident() - before < 50 << 20
    assert open_descriptors() == before_descriptors


def test_what_file_systems_seldom_do(tmp_path: Path) -> None:
    """Repeated and overlong names, interruptions, failures and lack of memory, under sanitizers."""
    program = tmp_path / "directory_faults"
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    command += [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{TOP / 'rdc' / 'files'}",
    ]
    sources = [NATIVE / "directory_faults.c", TOP / "rdc" / "files" / "depth" / "rows_at_once.c"]
    command += ["-pthread", *map(str, sources), "-o", str(program)]
    subprocess.run(command, check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "passed\n", "")


def test_a_root_names_the_directory_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()

    def refuse(*arguments: object, **more: object) -> Listed:
        raise OSError(errno.EOVERFLOW, os.strerror(errno.EOVERFLOW))

    monkeypatch.setattr("rdc.files.root.confined_root.list_directory", refuse)
    root = Root.open(os.fsencode(tmp_path))
    with pytest.raises(FileError, match=r"d: cannot list the directory: expected .*1024 MiB") as caught:
        root.list_unviewed(b"d")
    assert caught.value.code == ExitCode.PARTIAL
    assert caught.value.path_bytes == b"d"


def test_a_name_too_long_costs_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only file systems in user space have such names, so the definition is shown one."""
    (tmp_path / "f").touch()
    (tmp_path / "d").mkdir()
    scan = os.scandir

    class Entry:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self._entry = entry
            self.name = entry.name if entry.name == "f" else "n" * (NAME_BYTES + 1)

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            return self._entry.stat(follow_symlinks=follow_symlinks)

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            return self._entry.is_dir(follow_symlinks=follow_symlinks)

    @contextmanager
    def scandir(fd: int) -> Iterator[list[Entry]]:
        with scan(fd) as entries:
            yield [Entry(entry) for entry in entries]

    monkeypatch.setattr(os, "scandir", scandir)
    with opened(os.fsencode(tmp_path)) as fd:
        found = in_python(fd)
    assert found.listing.names == b"f\0"
    assert found.bad == (BadEntry(b"n" * 256, errno.ENAMETOOLONG, BadCall.NAME, is_directory=True),)
