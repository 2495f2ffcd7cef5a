"""Calls the C modules of rdc.files with anything, over a tree that changes all the time.

python -m tests.support.kernel.fuzzed_files SEED SECONDS ROUNDS    ends after so many of either; prints the
rounds

A sanitizer sees what is read or written past an end. What is asserted besides: no call raises anything
but ValueError, OSError, MemoryError, TypeError, OverflowError; columns that come back fit each other; no
descriptor is lost; nothing outside of the tree is read or changed.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from rdc.files import _files
from rdc.files.root.lister import RUN_DIRECTORIES

SECRET = b"outside of the tree: never read"
ALLOWED = (ValueError, OSError, MemoryError, TypeError, OverflowError)


class Fuzzer:
    def __init__(self, seed: int, top: Path) -> None:
        self.rng = random.Random(seed)
        self.top = top
        self.outside = top / "outside"
        self.outside.mkdir()
        (self.outside / "a").write_bytes(SECRET)
        self.tree = top / "tree"
        self.tree.mkdir()
        self.stop = threading.Event()
        self.racer = threading.Thread(target=self.race, args=(random.Random(seed + 1),))

    # The tree

    def change(self, rng: random.Random) -> None:
        """One change, of whatever kind; those that cannot be made are passed over."""
        directory = self.tree / rng.choice([".", "d", "d/e"])
        name = directory / rng.choice(
            ["a", "b", "c", "x" * 255, "\udcff", "d", "e", ".rdc-0123456789abcdef.tmp"]
        )
        what = rng.randrange(9)
        try:
            if what == 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
                with open(os.open(name, flags, 0o644), "wb") as file:
                    file.write(rng.randbytes(rng.choice([0, 1, 100, 5000, 70_000])))
            elif what == 1:
                with open(os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "wb") as file:
                    file.truncate(rng.choice([0, 10, 100_000]))
            elif what == 2:
                shutil.rmtree(name) if name.is_dir() and not name.is_symlink() else name.unlink()
            elif what == 3:
                targets = [str(self.outside), "../..", "a", "x" * 4000, str(self.outside / "a")]
                # The ways that changes go by never lead out.
                name.symlink_to("nowhere" if name.name in {"d", "e"} else rng.choice(targets))
            elif what == 4:
                name.mkdir()
            elif what == 5:
                name.rename(directory / rng.choice(["a", "b", "c"]))
            elif what == 6:
                os.setxattr(
                    name,
                    f"user.{rng.choice('abc')}",
                    rng.randbytes(rng.choice([0, 3, 3000])),
                    0,
                    follow_symlinks=False,
                )
            elif what == 7:
                os.utime(
                    name, ns=(0, rng.choice([0, -1, 1 << 60, rng.randrange(1 << 62)])), follow_symlinks=False
                )
            else:
                os.mkfifo(name)
        except (OSError, ValueError):
            pass

    def race(self, rng: random.Random) -> None:
        while not self.stop.is_set():
            self.change(rng)
            time.sleep(rng.choice([0, 0, 0.0001]))

    # Arguments

    def number(self) -> int:
        edges = [
            0,
            1,
            2,
            7,
            255,
            256,
            4096,
            1 << 20,
            (1 << 30) + 1,
            1 << 31,
            (1 << 32) - 1,
            1 << 62,
            (1 << 63) - 1,
        ]
        return self.rng.choice([*edges, *(-edge for edge in edges), 1 << 64, self.rng.randrange(20_000)])

    def raw(self) -> bytes:
        return self.rng.randbytes(self.rng.choice([0, 1, 7, 8, 15, 16, 33, 400]))

    def path(self) -> bytes:
        parts = [
            b"a",
            b"b",
            b"c",
            b"d",
            b"e",
            b"..",
            b".",
            b"",
            b"x" * 255,
            b"y" * 256,
            b"\xff",
            b"d/e",
            b"/",
            b"a\0b",
        ]
        return b"/".join(self.rng.choices(parts[: self.rng.choice([5, len(parts)])], k=self.rng.randrange(4)))

    def names(self, count: int, *, plain: bool) -> bytes:
        make: Callable[[], bytes] = (
            (lambda: self.rng.choice([b"a", b"b", b"c", b"\xff", b"new"])) if plain else self.path
        )
        names = b"".join(make().replace(b"\0", b"") + b"\0" for _ in range(count))
        return self.mangled(names)

    def mangled(self, column: bytes) -> bytes:
        """Return the column; now and then one that does not fit."""
        if self.rng.random() < 0.9 or not column:
            return column
        at = self.rng.randrange(len(column))
        return self.rng.choice(
            [column[:at], column + b"\0", column[:at] + self.rng.randbytes(1) + column[at + 1 :], b""]
        )

    def column(self, code: str, values: list[int]) -> bytes:
        return self.mangled(array(code, values).tobytes())

    def sizes(self, count: int) -> bytes:
        sizes = [self.rng.choice([0, 1, 100, 5000, 70_000]) for _ in range(count)]
        if self.rng.random() < 0.05 and count:
            sizes[self.rng.randrange(count)] = abs(self.number()) % (1 << 64)
        return self.column("Q", sizes)

    def times(self, count: int) -> bytes:
        edges = [0, -1, 10**9, (1 << 63) - 1, -(1 << 63)]
        return self.column(
            "q", [self.rng.choice([*edges, self.rng.randrange(1 << 62)]) for _ in range(count)]
        )

    def ids(self, count: int, code: str) -> bytes:
        most = {"H": 0xFFFF, "I": 0xFFFFFFFF}[code]
        return self.column(code, [self.rng.choice([0, 0o644, 0o4755, 1000, most]) for _ in range(count)])

    def count(self) -> int:
        return self.rng.choice([0, 1, 2, 5, 40])

    # Calls

    def ranges(self, fd: int) -> None:
        names = [name for name in os.listdir(fd) if (self.tree / name).is_file()]
        if not names:
            return
        try:
            file = os.open(self.rng.choice(names), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
        except OSError:
            return
        try:
            count = self.count()
            far = self.rng.random() < 0.1
            numbers = [
                abs(self.number()) % (1 << 64) if far else self.rng.randrange(3000) for _ in range(2 * count)
            ]
            rows = self.column("Q", numbers)
            whole = sum(numbers[1::2]) if rows == array("Q", numbers).tobytes() else None
            if self.rng.random() < 0.5:
                found = _files.read_ranges(file, rows)
                assert found is None or whole is None or len(found) == whole
            else:
                room = (
                    whole
                    if whole is not None and whole < 1 << 22 and self.rng.random() < 0.8
                    else self.rng.randrange(99)
                )
                _files.read_ranges_into(file, rows, bytearray(room))
        finally:
            os.close(file)

    def directory(self, fd: int) -> None:
        limit = self.rng.choice([0, 1, 500, 1 << 20, self.number()])
        if self.rng.random() < 0.5:
            columns, *_ = _files.list_directory(fd, b"", limit, self.depth(), self.depth())
            assert len(columns[4]) == len(columns[5]) == 8 * columns[0]
        elif self.rng.random() < 0.5:
            _files.list_directory(fd, self.path(), limit, self.depth(), self.depth())
        elif self.rng.random() < 0.5:
            todo = b"\0".join(
                [*(self.path() for _ in range(self.count())), self.rng.choice([b"", b"\0", b"x"])]
            )
            walked, rows, run, *_ = _files.list_directories(fd, todo, limit, self.depth(), self.depth())
            assert walked <= RUN_DIRECTORIES
            assert len(run[3]) == len(run[4]) == 8 * rows
        else:
            os.close(_files.open_directory(fd, self.path()))

    def contents(self, fd: int) -> None:
        count = self.count()
        sizes = [self.rng.choice([0, 1, 100, 5000, 70_000]) for _ in range(count)]
        wanted = self.column(
            "q", [self.number() % (1 << 62) if self.rng.random() < 0.02 else size for size in sizes]
        )
        head, tail = (self.rng.choice([0, 10, 8192, self.number()]) for _ in range(2))
        data, outcomes, ctimes, _ = _files.read_contents(
            fd, self.names(count, plain=False), wanted, head, tail, self.depth(), self.depth()
        )
        assert len(outcomes) * 2 == len(ctimes)
        assert SECRET not in data

    def depth(self) -> int:
        return self.rng.choice([1, 1, 3, 70, (1 << 32) - 1])

    def opened(self, fd: int) -> None:
        fds, devices, inodes, sizes, mtimes, ctimes, _ = _files.open_files(
            fd, self.names(self.count(), plain=False), self.depth()
        )
        try:
            count = len(fds) // 4
            assert [len(column) for column in (devices, inodes, sizes, mtimes, ctimes)] == [8 * count] * 5
            fits = self.rng.random() < 0.8
            columns = (
                (sizes, mtimes, ctimes) if fits else (self.sizes(count), self.times(count), self.times(count))
            )
            if max(array("Q", sizes), default=0) < 1 << 20 or not fits:
                try:
                    data, good, _ = _files.read_files(fds, *columns, self.depth())
                    assert len(good) == count
                    assert SECRET not in data
                except ALLOWED:
                    pass
            rows = self.column("Q", [self.rng.randrange(count + 2) for _ in range(count)])
            made = (self.ids(count, "H"), self.times(count), self.ids(count, "I"), self.ids(count, "I"))
            _files.set_metadata_of_files(fds, ctimes, rows, *made, False, self.depth())
        finally:
            _files.close_files(fds)

    def small(self, fd: int) -> None:
        count = self.count()
        names, sizes, mtimes = self.names(count, plain=True), self.sizes(count), self.times(count)
        limit = self.rng.choice([1 << 20, 0, abs(self.number()) % (1 << 64)])
        (content,) = _files.read_small(fd, names, sizes, mtimes, limit)[:1]
        assert len(content) <= limit
        assert SECRET not in content

    def staged(self, fd: int) -> None:
        count = self.count()
        sizes = [self.rng.choice([0, 1, 100, 5000]) for _ in range(count)]
        content = self.mangled(bytes(sum(sizes)))
        names = self.names(count, plain=True)
        directories = self.column("i", [fd if self.rng.random() < 0.95 else -1 for _ in range(count)])
        # A mangled descriptor could be one of this process's own.
        if set(array("i", directories[: len(directories) // 4 * 4])) - {fd, -1}:
            directories = array("i", [fd] * count).tobytes()
        expected = None if self.rng.random() < 0.5 else self.mangled(self.rng.randbytes(40 * count))
        fds, temporaries, _ = _files.stage_small(
            directories,
            names,
            self.column("Q", sizes),
            self.times(count),
            self.ids(count, "H"),
            self.ids(count, "I"),
            self.ids(count, "I"),
            False,
            content,
            self.rng.choice([0, 1, 4096, 16_384, (1 << 64) - 1]),
            self.mangled(self.rng.randbytes(4 * count)),
            expected,
            self.rng.randrange(16),
            self.depth(),
        )
        try:
            assert len(fds) == 4 * count
            assert len(temporaries) == 26 * count
            given = self.mangled(temporaries)
            fields = self.rng.randrange(16)
            failed, _ = _files.rename_small(directories, given, names, fds, expected, fields, self.depth())
            assert len(failed) == 4 * count
        finally:
            _files.close_files(fds)

    def xattrs(self, fd: int) -> None:
        entries = self.names(self.count(), plain=False)
        row, offset = (0, 0) if self.rng.random() < 0.8 else (abs(self.number()) % (1 << 62), self.number())
        by_name = _files.go_by_name() and self.rng.random() < 0.5
        following, at, found = _files.list_xattrs(
            fd, self.rng.choice([b"", self.path()]), entries, row, offset, by_name
        )
        assert all(row <= one[0] < following for one in found), (row, following, found)
        assert offset <= at <= len(entries)
        if _files.go_by_name():
            _files.get_xattr(fd, self.path(), self.rng.choice([b"user.a", b"user.b", b"", b"x" * 300]))

    def calls(self, fd: int) -> None:
        # These are the system's own and confine nothing: names of no link that leads out.
        first, second = self.rng.choices([b"e", b"new", b"newer", b"", b"x" * 256, b"\xff"], k=2)
        choice = self.rng.randrange(4)
        if choice == 0:
            os.close(_files.openat2(fd, self.path(), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0x08))
        elif choice == 1:
            _files.fchmodat2(fd, first, self.rng.randrange(1 << 12), 0x100)
        elif choice == 2:
            _files.renameat2(fd, first, fd, second, self.rng.choice([0, 1, 2, 99]))
        else:
            _files.fstatfs_type(fd)

    def round(self) -> None:
        fd = os.open(self.tree, os.O_RDONLY | os.O_DIRECTORY)
        try:
            ways = (
                self.ranges,
                self.directory,
                self.contents,
                self.opened,
                self.small,
                self.staged,
                self.xattrs,
            )
            self.rng.choice((*ways, self.calls))(fd)
        except ALLOWED:
            pass
        finally:
            os.close(fd)

    def run(self, seconds: float, rounds: int) -> int:
        """Rounds that were done."""
        self.round()
        gc.collect()
        # Whatever is open now is open at the end; the racing thread holds nothing then.
        before = len(os.listdir("/proc/self/fd"))
        ends = time.monotonic() + seconds
        done = 0
        self.racer.start()
        try:
            while done < rounds and time.monotonic() < ends:
                self.change(self.rng)
                self.round()
                done += 1
        finally:
            self.stop.set()
            self.racer.join()
        assert (self.outside / "a").read_bytes() == SECRET
        assert os.listdir(self.outside) == ["a"]
        assert len(os.listdir("/proc/self/fd")) == before
        return done


def main() -> None:
    seed, seconds, rounds = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="rdc-fuzz-") as top:
        print(f"{Fuzzer(seed, Path(top)).run(seconds, rounds)} rounds from seed {seed}")


if __name__ == "__main__":
    main()
