"""Stores that no put makes: each is refused with a message that names the part, in 300 MB and a second.

A file of a store may be damaged, or made up by someone who can write into a copy of it. What is read is what
was put, or an error, never less without one.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from blake3 import blake3

import rdc
from rdc.errors import ExitCode, RdcError
from rdc.lean.zstd import zstandard
from rdc.model.entries import PackedListing
from rdc.store.directory import KEY_BYTES
from rdc.store.place import PackStore, make_store
from rdc.store.tree_rows import LENGTH, DirectoryRows, StoredFiles, StreamRef, encode_rows
from tests.support.running.syncing import command
from tests.support.store.stores import PackedFrame, Problems, add_pack, put_tree, state_of, write_snapshot

MEMORY = 300 << 20
SECONDS = 5
"""More CPU time than any refusal takes on a slow machine; one second is promised on a fast one."""

WAIT_SECONDS = 60
"""After which whatever waits for something, without CPU time, is ended."""

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Path:
    make_store(os.fsencode(tmp_path / "st"))
    return tmp_path / "st"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with two snapshots of a small tree."""
    source = tmp_path / "tree"
    (source / "docs").mkdir(parents=True)
    for version in (1, 2):
        (source / "docs" / "file").write_bytes(b"version %d\n" % version * 500)
        put_tree(source, tmp_path / "filled")
    return tmp_path / "filled"


def in_bounds(call: Callable[[], str]) -> str:
    """What `call` returns, or the error that it raises, in a process with bounded memory and time."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, int(used) + SECONDS))
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(WAIT_SECONDS)
            try:
                said = call()
            except RdcError as error:
                said = str(error)
            except BaseException as error:  # noqa: BLE001 - the parent's assertion shows it
                said = f"not an error of rdc: {error!r}"
            os.write(write, said.encode(errors="replace")[:60_000])
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as told:
        said = told.read().decode()
    os.waitpid(child, 0)
    return said or "it took too much time"


def restored(store: Path) -> str:
    """Restore snapshot 1. Return the problems."""
    problems: list[str] = []

    def note(event: object) -> None:
        if isinstance(event, rdc.Problem):
            problems.append(event.message)

    rdc.sync(f"{store}/@1/", f"{store}-out/", rdc.SyncOptions(fsync=False), reporter=note, catalog=None)
    return "; ".join(problems)


def verified(store: Path) -> str:
    problems: list[str] = []
    rdc.verify_store(store, 1.0, reporter=lambda event: problems.append(str(event)))
    return "; ".join(problems)


def cleaned(store: Path) -> str:
    rdc.clean_store(store)
    return ""


def key_in(store: Path, content: bytes) -> bytes:
    with PackStore.open(os.fsencode(store)) as opened:
        return blake3(content, key=opened.head.key).digest(KEY_BYTES)


def put_stream(store: Path, *contents: bytes) -> StreamRef:
    """Store each content as a packed chunk. Return the stream of all."""
    for content in dict.fromkeys(contents):
        add_pack(store, PackedFrame(content, packed=True))
    keys = b"".join([key_in(store, content) for content in contents])
    return StreamRef(sum(map(len, contents)), 0, keys)


def no_rows(path: bytes) -> bytes:
    """The record of an empty directory."""
    listing = PackedListing(0, b"", b"", b"", b"", b"", b"", b"", b"")
    return encode_rows(DirectoryRows(path, listing, b"", (), b"", StoredFiles.of(())))


def one_file(name: bytes, content: StreamRef) -> bytes:
    """The record of a top directory with one file, whatever its name and content say."""
    size = content.size.to_bytes(8, "little")
    row = name + b"\0" + bytes([0]) + b"\xa4\x01" + size + bytes(8) + bytes(8)
    keys = len(content.keys) // KEY_BYTES
    file = bytes(9) + bytes([content.level]) + LENGTH.pack(keys) + bytes(32) + content.keys
    record = struct.pack("<IIIIIIII", 0, 1, len(name) + 1, 0, 0, 0, 0, 1) + row + file
    return LENGTH.pack(len(record)) + record


def circle(store: Path) -> StreamRef:
    one, two = bytes([1] * 16), bytes([2] * 16)
    add_pack(store, PackedFrame(b"1" * 60, key=one, bases=two), PackedFrame(b"2", key=two, bases=one))
    return StreamRef(60, 0, one)


def deep(store: Path) -> StreamRef:
    add_pack(store, PackedFrame(b"base", key=bytes(16)))
    add_pack(store, PackedFrame(b"deep", key=b"d" * 16, bases=bytes(16), depth=17))
    return StreamRef(4, 0, b"d" * 16)


def bomb(store: Path) -> StreamRef:
    data = zstandard.ZstdCompressor().compress(bytes(1 << 30))
    add_pack(store, PackedFrame(bytes(MIB), key=b"b" * 16, stored=data, packed=True))
    return StreamRef(MIB, 0, b"b" * 16)


def endless_size(store: Path) -> StreamRef:
    ref = put_stream(store, bytes(MIB))
    return StreamRef(1 << 62, 0, ref.keys)


def lists_of_lists(store: Path) -> StreamRef:
    """Four levels, each of a list that names the same chunk again and again."""
    ref = put_stream(store, bytes(MIB))
    for _ in range(3):
        ref = put_stream(store, ref.keys[:KEY_BYTES] * (MIB // KEY_BYTES))
    return StreamRef(1 << 42, 3, ref.keys * 64)


def lists_of_crumbs(store: Path) -> StreamRef:
    ref = put_stream(store, bytes(MIB))
    for _ in range(3):
        ref = put_stream(store, ref.keys * 2)
    return StreamRef(1 << 42, 3, ref.keys[:KEY_BYTES] * 60_000)


def crumbs(store: Path) -> StreamRef:
    """A stream of very many chunks of one byte."""
    ref = put_stream(store, b"x")
    keys = put_stream(store, ref.keys * (MIB // KEY_BYTES))
    return StreamRef(64 * MIB // KEY_BYTES, 1, keys.keys * 64)


def long_record(store: Path) -> StreamRef:
    first = LENGTH.pack((1 << 30) - 4) + bytes(MIB - 4)
    return put_stream(store, first, *[bytes(MIB)] * 1023)


def many_names(store: Path) -> StreamRef:
    """A record whose names are a hundred million empty ones."""
    head = struct.pack("<IIIIIIII", 0, 0, 99 * MIB, 0, 0, 0, 0, 0)
    first = LENGTH.pack(100 * MIB - 4) + head
    return put_stream(store, first + bytes(MIB - len(first)), *[bytes(MIB)] * 99)


def long_path(store: Path) -> StreamRef:
    head = struct.pack("<IIIIIIII", 100 * MIB - 36, 0, 0, 0, 0, 0, 0, 0)
    first = LENGTH.pack(100 * MIB - 4) + head
    return put_stream(store, first + b"p" * (MIB - len(first)), *[b"p" * MIB] * 99)


def cut_record(store: Path) -> StreamRef:
    return put_stream(store, no_rows(b"")[:-3])


def twice(store: Path) -> StreamRef:
    return put_stream(store, no_rows(b"") + no_rows(b"a") + no_rows(b"a"))


def leading_out(path: bytes) -> Callable[[Path], StreamRef]:
    def make(store: Path) -> StreamRef:
        return put_stream(store, no_rows(b"") + no_rows(path))

    return make


def named(name: bytes) -> Callable[[Path], StreamRef]:
    def make(store: Path) -> StreamRef:
        return put_stream(store, one_file(name, put_stream(store, b"content")))

    return make


TREES: list[tuple[Callable[[Path], StreamRef], str]] = [
    (circle, "bases of less depth|no pack has chunk"),
    (deep, "depth of at most 16"),
    (bomb, "a frame of 1073741824"),
    (endless_size, "a stream of at most"),
    (lists_of_lists, "a list of keys"),
    (lists_of_crumbs, "a list of keys"),
    (crumbs, "a list of keys|the keys of"),
    (long_record, "a record of"),
    (many_names, "the head of a directory|names"),
    (long_path, "a record of"),
    (cut_record, "after the last directory"),
    (twice, "a directory b'a'"),
    *[(leading_out(path), "a directory b") for path in (b"..", b"a/../..", b"/etc", b"a//b", b"a\0b")],
    *[(named(name), "names of entries in order") for name in (b"..", b"../x", b"/etc/x", b".")],
]


@pytest.mark.parametrize("job", [restored, verified, cleaned])
@pytest.mark.parametrize(
    "case", range(len(TREES)), ids=[f"{one[0].__name__} {number}" for number, one in enumerate(TREES)]
)
def test_a_hostile_tree_is_refused(store: Path, case: int, job: Callable[[Path], str]) -> None:
    make, why = TREES[case]
    write_snapshot(store, 1, make(store))
    said = in_bounds(lambda: job(store))
    assert any(one in said for one in why.split("|")), said
    out = Path(f"{store}-out")
    assert not out.exists() or os.listdir(out) == []
    assert sorted(os.listdir(store.parent)) in (["st"], ["st", "st-out"])


def test_a_file_of_crumbs_costs_itself_alone(store: Path) -> None:
    """Its listing is sound, and so is the other file of the directory."""
    for make in (crumbs, lists_of_lists, lists_of_crumbs, endless_size, circle):
        shutil.rmtree(store)
        make_store(os.fsencode(store))
        ref = make(store)
        size = min(ref.size, 1 << 42)
        tree = put_stream(store, one_file(b"file", StreamRef(size, ref.level, ref.keys[: 64 * KEY_BYTES])))
        write_snapshot(store, 1, tree)
        for job in (restored, verified):
            said = in_bounds(partial(job, store))
            assert "file: cannot be restored" in said, said
            assert os.listdir(f"{store}-out") == [] if job is restored else True


# Files of a store in the places of others.


def other_store(filled: Path) -> Path:
    other = filled.parent / "other"
    put_tree(filled.parent / "tree", other)
    return other


def foreign(filled: Path, path: Path) -> None:
    path.write_bytes((other_store(filled) / "snapshots" / "1").read_bytes())


def of_another_number(filled: Path, path: Path) -> None:
    path.write_bytes((filled / "snapshots" / "2").read_bytes())


def cut_off(filled: Path, path: Path) -> None:
    path.write_bytes((filled / "snapshots" / "2").read_bytes()[:100])


def empty(filled: Path, path: Path) -> None:
    path.write_bytes(b"")


def link_to_another(filled: Path, path: Path) -> None:
    path.symlink_to("2")


def pipe(filled: Path, path: Path) -> None:
    os.mkfifo(path)


def directory(filled: Path, path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "make", [foreign, of_another_number, cut_off, empty, link_to_another, pipe, directory]
)
def test_what_is_no_snapshot_is_named(filled: Path, make: Callable[[Path, Path], None]) -> None:
    """It is an error where it counts, and the other snapshot is restored."""
    path = filled / "snapshots" / "1"
    path.unlink()
    make(filled, path)
    shown = str(path)
    for job in (restored, verified, cleaned):
        said = in_bounds(partial(job, filled))
        assert shown in said, said
    with PackStore.open(os.fsencode(filled)) as opened, pytest.raises(RdcError, match="snapshots/1"):
        opened.snapshot(1)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        lambda path, said: path.write_bytes(said[:100]),
        lambda path, said: path.write_bytes(said[:50] + bytes([said[50] ^ 1]) + said[51:]),
        lambda path, said: path.symlink_to("3"),
        lambda path, said: path.mkdir(),
    ],
)
def test_a_snapshot_that_cannot_be_read_costs_no_other_one(
    filled: Path, tmp_path: Path, make: Callable[[Path, bytes], None], number: int
) -> None:
    """Nor is an older one ever taken for the latest, or its number for a missing one."""
    tree, other = tmp_path / "tree", 3 - number
    path = filled / "snapshots" / str(number)
    said = path.read_bytes()
    path.unlink()
    make(path, said)

    def restore(name: str) -> str:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        rdc.sync(f"{filled}/@{name}/", f"{tmp_path}/out/", catalog=None)
        return (tmp_path / "out" / "docs" / "file").read_text().partition("\n")[0]

    assert restore(f"{other}") == restore(f"tree/{other}") == f"version {other}"
    newest = ("latest", "tree/latest", "2100-01-01") if number == 2 else ()
    for name in (f"{number}", f"tree/{number}", *newest):
        with pytest.raises(RdcError, match=f"snapshots/{number}"):
            restore(name)
    if number == 1:
        assert restore("latest") == "version 2"
    listed = command("store", "list", filled)
    assert listed.code == ExitCode.PARTIAL
    assert [line.split()[0] for line in listed.out.splitlines()] == [f"{other}"]
    assert str(path) in listed.err
    with pytest.raises(RdcError, match=f"snapshots/{number}"):
        rdc.snapshots(filled)
    # The next put says so, and what it adds is whole.
    (tree / "docs" / "file").write_text("version 3\n")
    problems = Problems()
    report = rdc.store_put(tree, filled, reporter=problems, catalog=None)
    assert (report.number, report.exit) == (3, ExitCode.PARTIAL)
    assert [str(path) in text for text in problems.texts] == [True]
    assert restore("latest") == restore("3") == "version 3"


@pytest.mark.parametrize("make", [foreign, cut_off, empty, link_to_another, pipe, directory])
def test_what_is_no_pack_is_named(filled: Path, make: Callable[[Path, Path], None]) -> None:
    """A tree whose pack is replaced is an error, never an empty tree."""
    tree = state_of(filled.parent / "tree")
    path = min(filled.rglob("*.pack"), key=lambda one: one.stat().st_mtime_ns)
    path.unlink()
    make(filled, path)
    for job in (restored, verified, cleaned):
        said = in_bounds(partial(job, filled))
        assert path.name in said, said
    # Another put stores again what is lost, under its keys.
    put_tree(filled.parent / "tree", filled, rdc.StoreOptions(name="tree"))
    rdc.sync(f"{filled}/@3/", str(filled.parent / "again"), catalog=None)
    assert state_of(filled.parent / "again") == tree


def listed(store: Path) -> str:
    return "; ".join(str(snapshot.number) for snapshot in rdc.snapshots(store))


def copied(store: Path) -> str:
    done = rdc.sync(f"{store}/", f"{store}-copy/", rdc.SyncOptions(fsync=False), catalog=None)
    return f"exit code {int(done.exit)}"


@pytest.mark.parametrize("make", [pipe, directory, link_to_another])
@pytest.mark.parametrize("job", [listed, restored, copied, verified, cleaned])
def test_what_is_no_lock_keeps_nobody_waiting(
    filled: Path, make: Callable[[Path, Path], None], job: Callable[[Path], str]
) -> None:
    path = filled / "lock"
    path.unlink()
    make(filled, path)
    said = in_bounds(lambda: f"ended: {job(filled)}")
    assert said.startswith(("ended", f"{filled}/lock", f"rdc: {filled}")), said


# Stores of others, and of later versions.

JOBS: list[Callable[[Path], object]] = [
    lambda store: rdc.store_put(store.parent / "tree", store, catalog=None),
    lambda store: rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=(1,), apply=True)),
    rdc.clean_store,
]


@pytest.mark.parametrize("job", JOBS, ids=["put", "forget", "gc"])
def test_the_store_of_another_user_is_not_changed(
    filled: Path, job: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state_of(filled)
    owner = os.stat(filled).st_uid
    real = os.fstat

    class OfAnother:
        def __init__(self, found: os.stat_result) -> None:
            self._found = found
            self.st_uid = owner + 1 if stat.S_ISDIR(found.st_mode) else owner + 2  # new files are the user's

        def __getattr__(self, name: str) -> object:
            return getattr(self._found, name)

    monkeypatch.setattr(os, "geteuid", lambda: owner + 2)
    monkeypatch.setattr(os, "fstat", lambda fd: OfAnother(real(fd)))
    with pytest.raises(RdcError, match="expected a store that you own"):
        job(filled)
    monkeypatch.undo()
    assert state_of(filled) == before


@pytest.mark.parametrize(
    "job",
    [*JOBS, rdc.snapshots, rdc.verify_store, restored],
    ids=["put", "forget", "gc", "list", "verify", "restore"],
)
def test_a_later_version_is_refused_by_every_job(filled: Path, job: Callable[[Path], object]) -> None:
    head = bytearray((filled / "store").read_bytes())
    head[8:12] = (2).to_bytes(4, "little")
    (filled / "store").chmod(0o600)
    (filled / "store").write_bytes(head)
    before = state_of(filled)
    with pytest.raises(RdcError, match="a store of version 2, this rdc reads 1; update rdc"):
        job(filled)
    assert state_of(filled) == before


def spoilt_head(store: Path) -> None:
    (store / "store").chmod(0o600)
    (store / "store").write_bytes(b"R" + (store / "store").read_bytes()[1:].swapcase())


def lost_head(store: Path) -> None:
    (store / "store").unlink()


@pytest.mark.parametrize("spoil", [spoilt_head, lost_head])
@pytest.mark.parametrize(
    "job", [*JOBS, rdc.snapshots, rdc.verify_store], ids=["put", "forget", "gc", "list", "verify"]
)
def test_a_store_whose_head_is_lost_is_damaged_and_gets_no_other(
    filled: Path, spoil: Callable[[Path], None], job: Callable[[Path], object]
) -> None:
    """With another head its packs and snapshots would be of no use, even once the lost one is restored."""
    head = (filled / "store").read_bytes()
    spoil(filled)
    before = state_of(filled)
    with pytest.raises(RdcError, match=r"/store: damaged: expected the head of a store, found") as caught:
        job(filled)
    assert "a copy of the store" in str(caught.value)
    assert state_of(filled) == before
    (filled / "store").unlink(missing_ok=True)
    (filled / "store").write_bytes(head)
    assert restored(filled) == ""


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("missing/st", r"/missing: expected a directory to make the store in, found nothing; make it"),
        ("file/st", r"/file: expected a directory to make the store in, found a file"),
        ("file", r"/file: expected a store, or a missing or empty directory to make one in, found something"),
        ("link", r"/link: expected a store, or a missing or empty directory to make one in, found something"),
    ],
)
def test_where_no_store_can_be_made_is_one_line_with_advice(store: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(RdcError, match=message):
        make_store(os.fsencode(tmp_path / store))


def test_what_a_put_left_before_it_made_the_head_is_completed(store: Path) -> None:
    (store / "store").unlink()
    make_store(os.fsencode(store))
    assert rdc.snapshots(store) == ()


def test_another_file_in_the_place_of_a_head_stays(tmp_path: Path) -> None:
    (tmp_path / "st").mkdir()
    (tmp_path / "st/store").write_text("a list of stores")
    with pytest.raises(RdcError, match=r"expected a store, or a missing or empty directory .* found 'store'"):
        make_store(os.fsencode(tmp_path / "st"))
    assert (tmp_path / "st/store").read_text() == "a list of stores"
