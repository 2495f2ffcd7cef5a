"""What is lost where the kernel has nothing that Linux alone has: it is named, and what is left is correct.

All tests but those of what is lost pass there: scripts/soak without_linux.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.project_paths import TOP
from tests.support.running.lost_without_linux import LOST
from tests.support.trees.trees import Link, describe, read_tree, tree, write_tree

REFUSING = (sys.executable, "-m", "tests.support.running.refused_calls", "LINUX:ENOSYS")
CONTENT = b"content that is not small " * 20_000


def refused(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """rdc, run where the calls are refused."""
    return subprocess.run([*REFUSING, "rdc", *words], cwd=TOP, capture_output=True, text=True)


def synced(source: Path, destination: Path, *words: str) -> list[dict[str, object]]:
    """The events of a sync that succeeds, after which both directories are equal."""
    ended = refused("sync", "--json", "--delete", *words, f"{source}/", f"{destination}/")
    assert ended.returncode == ExitCode.OK, ended.stderr
    assert describe(read_tree(source), read_tree(destination)) == []
    return [json.loads(line) for line in ended.stdout.splitlines()]


def of_type(events: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    return [event for event in events if event["event"] == name]


def test_the_calls_are_refused() -> None:
    asked = """
import errno, fcntl, os
from rdc.files.base import syscalls
here = os.open(".", os.O_RDONLY)
calls = [
    lambda: syscalls.open_directory_beneath(here, b"rdc"),
    lambda: syscalls.chmod_no_follow(b"no-such", here, 0),
    lambda: syscalls.rename_no_replace(b"no-such", b"nor-this", here),
    lambda: syscalls.rename_exchange(b"no-such", b"nor-this", here),
    lambda: syscalls.syncfs(here),
    lambda: syscalls.fallocate_keep_size(here, 1),
    lambda: os.memfd_create("none"),
    lambda: os.eventfd(0),
    lambda: os.pidfd_open(os.getpid()),
    lambda: os.copy_file_range(here, here, 1),
    lambda: fcntl.ioctl(here, 0x40049409, here),
    lambda: fcntl.fcntl(here, fcntl.F_SETLEASE, fcntl.F_RDLCK),
]
for number, call in enumerate(calls):
    try:
        call()
    except OSError as error:
        assert error.errno == errno.ENOSYS, (number, error)
    else:
        raise AssertionError(number)
os.close(fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, 3))
"""
    program = (
        "import runpy, sys; from tests.support.running.refused_calls import refuse; refuse('LINUX:ENOSYS');"
    )
    subprocess.run([sys.executable, "-c", f"{program} exec({asked!r})"], cwd=TOP, check=True)


def test_the_tests_of_what_is_lost_exist() -> None:
    for beginnings in LOST.values():
        for beginning in beginnings:
            file, _, function = beginning.partition("::")
            place = TOP / "tests" / file
            assert place.exists(), beginning
            assert not function or f"def {function.partition('[')[0]}" in place.read_text(), beginning


@pytest.mark.parametrize("words", [(), ("--no-fsync",), ("-H", "--sparse"), ("-A", "-X")], ids=str)
def test_a_sync(words: tuple[str, ...], tmp_path: Path) -> None:
    """Files that are new, changed, small and long, links, and entries of another kind than before."""
    held = tree(
        {
            "changed": CONTENT,
            "file": b"of another kind",
            "gone": b"x",
            "link": Link(b"a"),
            "d/e/in": b"",
            "t/a": b"",
        }
    )
    wanted = tree(
        {
            "changed": b"new" + CONTENT,
            "file/in": b"it",
            "link": Link(b"b"),
            "d/e": b"a file",
            "long": CONTENT,
            **{f"small/{number}": b"%d" % number for number in range(70)},
        }
    )
    source, destination = write_tree(tmp_path / "source", wanted), write_tree(tmp_path / "there", held)
    synced(source, destination, *words)


def test_what_was_moved_is_copied(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"d/old": CONTENT, "kept": b"1"}))
    destination = tmp_path / "there"
    synced(source, destination)
    (source / "d").rename(source / "e")
    (source / "kept").rename(source / "kept-too")
    events = synced(source, destination)
    assert {event["path"] for event in of_type(events, "item")} >= {"e/old", "kept-too"}


def test_nothing_that_appears_is_replaced(tmp_path: Path) -> None:
    """The second step of link(2) and unlink(2) takes only our own name away."""
    program = f"""
import os
from rdc.files.root.policies import rename_to_free_name
from tests.support.running.refused_calls import refuse
refuse("LINUX:ENOSYS")
here = os.open({str(tmp_path)!r}, os.O_RDONLY)
for name in ("ours", "taken"):
    open(name, "w", opener=lambda path, flags: os.open(path, flags, dir_fd=here)).write(name)
try:
    rename_to_free_name(b"ours", b"taken", here)
except FileExistsError:
    rename_to_free_name(b"ours", b"free", here)
"""
    subprocess.run([sys.executable, "-c", program], cwd=TOP, check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"free": "ours", "taken": "taken"}


def test_no_hard_links_are_made(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", tree({"a": CONTENT, "b": CONTENT}))
    ended = refused("dedupe", "--hardlink", "--apply", tmp_path / "tree")
    assert ended.returncode == ExitCode.PARTIAL
    assert "the kernel cannot say whether it is open for writing" in ended.stderr
    assert (tmp_path / "tree/a").stat().st_ino != (tmp_path / "tree/b").stat().st_ino


def test_no_duplicates_are_removed(tmp_path: Path) -> None:
    before = read_tree(write_tree(tmp_path / "tree", tree({"a": CONTENT, "b": CONTENT})))
    ended = refused("dupes", "--delete", "--apply", f"--journal={tmp_path}/journal", tmp_path / "tree")
    assert ended.returncode == ExitCode.PARTIAL
    assert "the kernel cannot say whether it is open for writing" in ended.stderr
    assert read_tree(tmp_path / "tree") == before


def test_no_blocks_are_shared(btrfs: Path) -> None:
    write_tree(btrfs / "tree", tree({"a": CONTENT, "b": CONTENT}))
    ended = refused("dedupe", "--apply", btrfs / "tree")
    assert ended.returncode == ExitCode.PARTIAL
    assert "cannot share its blocks: found a file system that cannot share blocks (ENOSYS)" in ended.stderr


def test_what_is_watched_is_read_at_intervals(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"a": b"1"}))
    words = (*REFUSING, "rdc", "watch", "--rescan=1", f"{source}/", f"{tmp_path}/there/")
    watching = subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        _wait_for(tmp_path / "there/a")
        (source / "b").write_bytes(b"2")
        _wait_for(tmp_path / "there/b")
    finally:
        watching.terminate()
        _, errors = watching.communicate(timeout=20)
    assert "not every directory can be watched: inotify" in errors


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, path
        time.sleep(0.05)


def test_a_directory_that_is_a_link_is_named(tmp_path: Path) -> None:
    """openat2 says so itself; else it takes a second look."""
    os.symlink("elsewhere", tmp_path / "link")
    program = """
import os, sys
from rdc.errors import FileError
from rdc.files.root.root import Root
try:
    Root.open(os.fsencode(sys.argv[1])).directory(b"link")
except FileError as error:
    print(error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", "import sys; from tests.support.running.refused_calls import refuse;"
         f"refuse('LINUX:ENOSYS'); exec({program!r})", tmp_path],
        cwd=TOP, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "found a symbolic link" in ended.stdout
