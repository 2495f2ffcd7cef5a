"""Helpers that list one directory in C and in Python."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import strategies as st

from rdc.files import _files
from rdc.files.base.paths import RESERVED_PATTERN
from rdc.files.root import lister
from rdc.files.root import lister as listing_reference
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import Kind, Listed


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
