"""What can be wrong with files and places: one clear line each, rsync's exit code, all else synced."""

from __future__ import annotations

import errno
import os
import random
import re
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileError
from rdc.files.root.root import Root
from rdc.limits import SMALL_MANIFEST
from tests.end_to_end.failures.small_disk import read_only, small_disk
from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.syncing import FAR, Ended, command
from tests.support.trees.trees import Directory, File, Tree, describe, litter, read_tree, tree, write_tree
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

WANTED = tree({"a": b"a", "d/b": b"b", "z": b"z"})

REMOTE = ("-e", PSEUDO_SSH, "--remote-path", FAR)


def check_line(ended: Ended, code: ExitCode, *parts: str) -> None:
    """One line on stderr besides the summary, for people and without a traceback."""
    assert ended.code == code, ended
    assert len(ended.complaints) == 1, ended.err
    line = ended.complaints[0]
    assert line.startswith("rdc: ") and "internal error" not in line
    for part in parts:
        assert part in line, line


def test_an_unreadable_file_is_named_and_the_others_synced() -> None:
    with place_of_nobody() as place:

        def work() -> tuple[Ended, Tree]:
            source = write_tree(place / "source", WANTED | {b"d/b": File(b"b", 0o000)})
            (place / "destination").mkdir()
            ended = command("sync", f"{source}/", place / "destination")
            return ended, read_tree(place / "destination")

        ended, found = as_nobody(work)
        check_line(ended, ExitCode.PARTIAL, "source/d/b: cannot open it for reading: found Permission denied")
        assert describe({path: WANTED[path] for path in WANTED if path != b"d/b"}, found) == []


def test_an_unreadable_old_version_is_replaced() -> None:
    """What cannot serve as a base is no reason to keep it, nor to fail; -c cannot compare it."""
    with place_of_nobody() as place:

        def work() -> list[tuple[Ended, Tree]]:
            source = write_tree(place / "source", WANTED)
            results = []
            for number, words in enumerate(([], ["-c"])):
                held = WANTED | {b"a": File(b"old", 0o000), b"d/b": File(b"b", 0o000)}
                destination = write_tree(place / str(number), held)
                results.append((command("sync", *words, f"{source}/", destination), read_tree(destination)))
            return results

        for ended, found in as_nobody(work):
            assert (ended.code, ended.complaints) == (ExitCode.OK, [])
            assert describe(WANTED, found) == []


@pytest.mark.parametrize("entries", [0, SMALL_MANIFEST])
def test_a_directory_closed_to_its_owner_is_opened_while_it_is_worked_in(entries: int) -> None:
    """In few entries and in many. What the source does not have may stay closed, unless it is to be
    deleted."""
    more = tree({f"more/{number}": b"" for number in range(entries)})
    wanted = WANTED | more | {b"d": Directory(0o500), b"e": Directory(0o700)} | tree({"d/e/f": b"f"})
    held = WANTED | more | {b"d": Directory(0o000), b"e": Directory(0o000), b"other": Directory(0o000)}
    held[b"d/b"] = File(b"old")
    with place_of_nobody() as place:

        def work() -> list[Ended]:
            source, destination = write_tree(place / "source", wanted), write_tree(place / "to", held)
            words = ("sync", "-i", f"{source}/", destination)
            dry = command(*words, "-n")
            ends = [dry, command(*words)]
            closed = os.stat(destination / "other").st_mode & 0o777
            ends += [command(*words, "--delete"), command(*words, "--delete")]
            assert closed == 0
            os.chmod(source / "d", 0o700)
            os.chmod(destination / "d", 0o700)
            assert describe(read_tree(source), read_tree(destination)) == []
            return ends

        dry, first, deleting, last = as_nobody(work)
    assert dry.code == ExitCode.PARTIAL
    places = [
        line.partition(": cannot list the directory: found Permission denied")[0] for line in dry.complaints
    ]
    assert [place[-4:] for place in places] == ["to/d", "to/e"]
    for ended in (first, deleting, last):
        assert (ended.code, ended.complaints) == (ExitCode.OK, [])
    assert ">f.s....... d/b" in first.out
    assert deleting.out.splitlines()[-1] == "*deleting   other/"
    assert last.out == ""


def test_a_closed_directory_in_the_way_goes_only_with_delete() -> None:
    with place_of_nobody() as place:

        def work() -> tuple[Ended, Ended, Tree]:
            source = write_tree(place / "source", tree({"d": b"a file by now"}))
            destination = write_tree(place / "to", tree({"d/e/f": b"f"}))
            os.chmod(destination / "d/e", 0o000)
            os.chmod(destination / "d", 0o000)
            first = command("sync", f"{source}/", destination)
            return first, command("sync", "--delete", f"{source}/", destination), read_tree(destination)

        first, second, found = as_nobody(work)
    check_line(first, ExitCode.PARTIAL, "d: a directory is in the way, which cannot be read: ")
    assert (second.code, second.complaints) == (ExitCode.OK, [])
    assert describe(tree({"d": b"a file by now"}), found) == []


def test_a_directory_that_cannot_be_read_is_named_once() -> None:
    with place_of_nobody() as place:

        def work() -> Ended:
            source = write_tree(place / "source", WANTED | tree({"d/deep/c": b"c"}))
            held = write_tree(place / "destination", WANTED | tree({"d/deep/c": b"old"}))
            os.chmod(held / "d", 0o000)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Root, "set_metadata", denied)
                return command("sync", "-i", f"{source}/", held)

        def denied(_: Root, path: bytes, *words: object, **more: object) -> None:
            raise FileError(path, "not its owner")

        ended = as_nobody(work)
    assert [line.partition(": found")[0] for line in ended.complaints if "cannot list" in line] == [
        f"rdc: {place}/destination/d: cannot list the directory"
    ]


@pytest.mark.parametrize("side", ["source", "destination"])
def test_a_disk_error_while_reading(side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the source the file fails by name, its old version stays; at the destination it was only a base."""
    wanted = tree({"big": random.Random(1).randbytes(400_000), "z": b"z"})
    held = tree({"big": File(random.Random(1).randbytes(300_000), 0o644, 1)})
    source, destination = write_tree(tmp_path / "source", wanted), write_tree(tmp_path / "destination", held)
    broken = os.stat(tmp_path / side / "big").st_ino
    pread = os.pread

    def failing_pread(fd: int, length: int, offset: int) -> bytes:
        if os.fstat(fd).st_ino == broken and offset + length > 100_000:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(fd, length, offset)

    monkeypatch.setattr("os.pread", failing_pread)
    ended = command("sync", f"{source}/", destination)
    monkeypatch.undo()
    found = read_tree(destination)
    if side == "source":
        check_line(ended, ExitCode.PARTIAL, "big: cannot read it: found Input/output error")
        assert (found[b"big"], found[b"z"]) == (held[b"big"], wanted[b"z"])
    else:
        assert (ended.code, ended.complaints) == (ExitCode.OK, [])
        assert describe(wanted, found) == []
    assert litter(found) == []


def test_owners_are_kept_by_number_where_that_is_allowed(tmp_path: Path) -> None:
    """As root, or when asked for; a kept setuid bit is set after the owner, which would clear it."""
    source = write_tree(tmp_path / "source", WANTED | {b"a": File(b"a", 0o4711)})
    owners = {"a": (1234, 4321), "d": (7, 8), "d/b": (0, 99)}
    if os.geteuid() == 0:
        for name, (uid, gid) in owners.items():
            os.chown(source / name, uid, gid)
        (source / "a").chmod(0o4711)
        os.symlink("a", source / "link")
        os.lchown(source / "link", 5, 6)

    def owned(top: Path) -> dict[str, tuple[int, int, int]]:
        entries = ((entry, os.lstat(entry)) for entry in top.rglob("*"))
        return {str(e.relative_to(top)): (s.st_uid, s.st_gid, s.st_mode) for e, s in entries}

    assert command("sync", f"{source}/", tmp_path / "kept").code == ExitCode.OK
    assert owned(tmp_path / "kept") == owned(source)
    again = command("sync", "-i", f"{source}/", tmp_path / "kept")
    assert (again.code, again.out) == (ExitCode.OK, "")
    assert command("sync", "--no-owner", f"{source}/", tmp_path / "own").code == ExitCode.OK
    assert {(uid, gid) for uid, gid, _ in owned(tmp_path / "own").values()} == {(os.geteuid(), os.getegid())}


def test_an_unwritable_directory_is_named_and_the_others_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another user's, who alone could lend its rights."""
    monkeypatch.setattr("rdc.session.destination.selected.borrow_permissions", lambda root, path: False)
    with place_of_nobody() as place:

        def work() -> tuple[Ended, Tree]:
            source = write_tree(place / "source", WANTED)
            destination = write_tree(place / "destination", tree({"d": Directory(0o555)}))
            return command("sync", f"{source}/", destination), read_tree(destination)

        ended, found = as_nobody(work)
        check_line(ended, ExitCode.PARTIAL, "d/b: cannot make a temporary file beside it: found Permission")
        assert set(found) == {b"", b"a", b"d", b"z"}


def read_top_anew(top: Path, wanted: Tree) -> Tree:
    """`wanted` after something was put into its top directory."""
    return wanted | {b"": Directory(0o755, top.stat().st_mtime_ns)}


def test_an_unwanted_special_file_is_noted_and_skipped(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", WANTED)
    os.mkfifo(source / "fifo")
    wanted = read_top_anew(source, WANTED)
    ended = command("sync", "--no-specials", f"{source}/", tmp_path / "destination")
    check_line(ended, ExitCode.OK, "note: fifo: skipped, neither file, directory nor symlink")
    assert describe(wanted, read_tree(tmp_path / "destination")) == []


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_missing_source(far: bool, slash: str, tmp_path: Path) -> None:
    where = f"{tmp_path}/nowhere/src{slash}"
    ended = command("sync", *REMOTE, f"far:{where}" if far else where, tmp_path)
    check_line(ended, ExitCode.PARTIAL, "nowhere")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("far", [False, True])
def test_a_missing_parent_of_the_destination(far: bool, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", WANTED)
    where = tmp_path / "nowhere" / "new"
    ended = command("sync", *REMOTE, f"{source}/", f"far:{where}" if far else where)
    check_line(ended, ExitCode.FILE_IO, f"{where}: cannot open it: expected a directory, found nothing")
    assert os.listdir(tmp_path) == ["source"]


@pytest.mark.parametrize("far", [False, True])
def test_a_file_where_the_destination_should_be(far: bool, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", WANTED)
    (tmp_path / "plain").write_bytes(b"mine")
    where = tmp_path / "plain"
    ended = command("sync", *REMOTE, f"{source}/", f"far:{where}" if far else where)
    check_line(ended, ExitCode.FILE_IO, f"{where}: cannot open it: expected a directory, found a file")
    assert where.read_bytes() == b"mine"


OLD = tree({name: File(random.Random(name).randbytes(400_000), 0o640, 1) for name in "abcdef"})


@pytest.mark.parametrize("fsync", ["--fsync", "--no-fsync"])
@pytest.mark.parametrize("size", [400_000, 1_400_000])
def test_a_full_disk_leaves_old_files_whole(
    size: int, fsync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of `size` bytes: from a megabyte on, space is reserved before anything is written."""
    new = tree({name: random.Random(-size).randbytes(size) for name in "abcdef"})
    source = write_tree(tmp_path / "source", new)
    with small_disk(tmp_path / "small", 3_900_000, monkeypatch) as place:
        destination = write_tree(place / "destination", OLD)
        ended = command("sync", fsync, f"{source}/", destination)
        check_line(ended, ExitCode.FILE_IO, "No space left on device", "every file is whole, old or new")
        found = read_tree(destination)
        assert litter(found) == []
        assert set(found) == set(OLD)
        assert all(found[path] in (OLD[path], new[path]) for path in OLD if path)
        assert any(found[path] == new[path] for path in new if path), "what was complete is in its place"
        monkeypatch.undo()


def test_a_full_disk_at_the_far_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason crosses the wire. Where nothing can be mounted, a child would not see what is patched: both
    ends are then in this process."""
    new = tree({name: random.Random(name + "new").randbytes(1_400_000) for name in "abcdef"})
    source = write_tree(tmp_path / "source", new)
    with small_disk(tmp_path / "small", 3_900_000, monkeypatch) as place:
        far = "far:" if place.is_mount() else ""
        destination = write_tree(place / "destination", OLD)
        ended = command("sync", *REMOTE, f"{source}/", f"{far}{destination}")
        check_line(ended, ExitCode.FILE_IO, "No space left on device")
        found = read_tree(destination)
        assert litter(found) == [] and all(found[path] in (OLD[path], new[path]) for path in OLD if path)


def test_a_read_only_destination_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_tree(tmp_path / "source", WANTED)
    destination = write_tree(tmp_path / "destination", OLD)
    with read_only(destination, monkeypatch):
        ended = command("sync", "--delete", f"{source}/", destination)
        check_line(ended, ExitCode.FILE_IO, "Read-only file system", "mount the destination read-write")
        far = "far:" if destination.is_mount() else ""
        ended = command("sync", *REMOTE, "--delete", f"{source}/", f"{far}{destination}")
        check_line(ended, ExitCode.FILE_IO, "Read-only file system")
        # What would be done can still be shown.
        assert command("sync", "-n", f"{source}/", destination).code == ExitCode.OK
        assert describe(OLD, read_tree(destination)) == []


@pytest.mark.parametrize("depth", [0, 17])
def test_hostile_names_cannot_forge_output(depth: int) -> None:
    """Line ends and escape sequences, in items and errors, also at paths past every buffer."""
    evil = b"/".join([b"y" * 255] * depth + [b"\x1b[2J\nrdc: all is well\r"])
    with place_of_nobody() as place:

        def work() -> Ended:
            source = write_tree(place / "source", tree({os.fsdecode(evil): File(b"", 0o000), "\n": b"2"}))
            return command("sync", "-i", f"{source}/", place / "destination")

        ended = as_nobody(work)
        check_line(ended, ExitCode.PARTIAL, "/source/")
        assert set(ended.err) <= {"\n", *map(chr, range(32, 127))}
        assert depth or r"\x1b[2J\x0ardc: all is well\x0d: cannot open it" in ended.err
        assert all(re.fullmatch(r"[>c][fd]\+{9} [ -~]+", line) for line in ended.out.splitlines())
        assert r">f+++++++++ \x0a" in ended.out.splitlines()


def test_as_a_process(tmp_path: Path) -> None:
    """The same through a real command line: exit status, stdout for data, stderr for talk."""
    source = write_tree(tmp_path / "source", WANTED)
    ended = command("sync", "-v", f"{source}/", tmp_path / "new", process=True)
    assert (ended.code, sorted(ended.out.split())) == (0, ["./", "a", "d/", "d/b", "z"])
    assert ended.complaints == [] and ended.err.startswith("5 new; copied ")
    missing = command("sync", tmp_path / "nothing", tmp_path / "new", process=True)
    check_line(missing, ExitCode.PARTIAL, "no such file or directory")
