"""Helpers that list directories in C and in Python."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import strategies as st

from rdc.files import _files
from rdc.files.base.paths import RESERVED_PATTERN, join
from rdc.files.root import lister
from rdc.files.root import lister as listing_reference
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import Kind, Listed, little_endian_integers, strings
from rdc.model.preserved import is_distant


@contextmanager
def opened(path: bytes) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def in_c(fd: int, limit: int = DIRECTORY_BYTES) -> Listed:
    assert lister._extension is _files
    return lister.list_directory(fd, limit=limit)


def in_python(fd: int, limit: int = DIRECTORY_BYTES) -> Listed:
    return listing_reference.read_directory(fd, limit)


def in_python_many(
    top: int, todo: list[bytes], limit: int = DIRECTORY_BYTES
) -> tuple[list[tuple[bytes, Listed]], list[bytes], tuple[bytes, Listed] | None, bool]:
    """The plain directories of a run, those to come, the one alone, and whether the next one failed."""
    found: list[tuple[bytes, Listed]] = []
    todo, rows = list(todo), 0
    while (
        todo
        and len(found) < lister.RUN_DIRECTORIES
        and rows < lister.RUN_ROWS
        and sum(len(path) + 1 for path in todo) < lister.RUN_PATHS
    ):
        path = todo[-1]
        try:
            if len(path) > lister.RUN_PATH_BYTES or path in (b".", b".."):
                raise OSError(errno.EINVAL, "no path of a run")
            fd = lister.open_directory(top, path) if path else os.open(b".", os.O_RDONLY, dir_fd=top)
            try:
                listed = in_python(fd, limit)
                device = os.fstat(fd).st_dev
            finally:
                os.close(fd)
        except OSError:
            return found, todo, None, True
        todo.pop()
        names, times = strings(listed.listing.names), (listed.listing.mtimes, listed.inodes.ctimes)
        distant = any(
            map(is_distant, [each for column in times for each in little_endian_integers("q", column)])
        )
        special = Kind.SPECIAL in listed.listing.kinds
        devices = little_endian_integers("Q", listed.inodes.devices)
        mounts = any(devices[row] != device for row in listed.listing.rows_of(Kind.DIRECTORY))
        odd = listed.reserved or listed.bad or distant or special or mounts
        if odd or len(names) > lister.RUN_ROWS:
            return found, todo, (path, listed), False
        found.append((path, listed))
        rows += len(names)
        todo += [join(path, names[row]) for row in reversed(listed.listing.rows_of(Kind.DIRECTORY))]
    return found, todo, None, False


def make(path: bytes, kind: Kind, turn: int) -> None:
    if kind == Kind.FILE:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.truncate(path, (turn * 0x1234_5678) % (1 << 42))
    elif kind == Kind.DIRECTORY:
        os.mkdir(path)
    elif kind == Kind.SYMLINK:
        os.symlink(b"t" * (1 + turn * 997 % 4095), path)
    elif turn % 2:
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as bound, opened(os.path.dirname(path)) as where:
            # A socket's path has 108 bytes at most.
            bound.bind(b"/proc/self/fd/%d/s" % where)
        os.rename(os.path.dirname(path) + b"/s", path)
    if kind != Kind.SYMLINK:
        os.chmod(path, turn * 0o1234567 & 0o7777)
    if os.geteuid() == 0:
        os.lchown(path, turn * 0x0765_4321 & 0xFFFF_FFFE, turn * 0x1357_9BDF & 0xFFFF_FFFE)
        if kind != Kind.SYMLINK:
            os.chmod(path, turn * 0o1234567 & 0o7777)


# Names that differ early, late, or only by being longer: the sort looks at 8 bytes first.
prefixes = st.sampled_from([b"", b"a", b"seven_b", b"eight_by", b"nine_byte", b"x" * 200, b".rdc-"])


endings = st.binary(max_size=55) | st.sampled_from([b"\x01", b"\xff", b"\n", b" ", b"~", b"\x80"])


names = st.one_of(
    st.builds(lambda prefix, end: prefix + end, prefixes, endings),
    st.from_regex(RESERVED_PATTERN, fullmatch=True),
    st.from_regex(rb"\.rdc-[0-9a-fgA/ ]{15,17}\.tm[pq]?", fullmatch=True),
).map(lambda name: name.replace(b"\0", b"0").replace(b"/", b"|"))


names = names.filter(lambda name: name not in {b"", b".", b"..", b"s"})
