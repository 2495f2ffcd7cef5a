"""A file system in memory that takes names for one if Unicode does: it keeps them decomposed, as HFS+ did.

python -m tests.end_to_end.systems.normalising_double POINT mounts it and answers the kernel until unmounted.
A second word, `preserving`, lets it list names as they were given, as APFS does.
The messages are those of linux/fuse.h, version 7.31. What is not answered is refused with ENOSYS.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import stat
import struct
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.project_paths import TOP

__all__ = ["normalising_mounted"]

_BUFFER = (1 << 17) + 4096
_IN, _OUT = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=6Q10I")
_SET = struct.Struct("=II6Q8I")
_BLOCK = 4096
_GONE = (errno.ENODEV, errno.EBADF)


@dataclass
class _Node:
    number: int
    mode: int
    uid: int
    gid: int
    content: bytearray = field(default_factory=bytearray)
    """A link's is its target."""
    children: dict[bytes, _Node] = field(default_factory=dict)
    given: dict[bytes, bytes] = field(default_factory=dict)
    """The children's names as they were given."""
    links: int = 1
    accessed: int = 0
    modified: int = 0
    changed: int = 0


def _normal(name: bytes) -> bytes:
    text = name.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFD", text).encode("utf-8", "surrogateescape")


class _Double:
    def __init__(self, *, preserving: bool) -> None:
        self._preserving = preserving
        self._numbers = itertools.count(1)
        self._nodes: dict[int, _Node] = {}
        self._new(stat.S_IFDIR | 0o755, 0, 0)
        self._answers: dict[int, Callable[[_Node, tuple[int, int], bytes], bytes]] = {
            1: lambda node, _, body: self._entry(self._child(node, body[:-1])),
            3: lambda node, _, body: self._attributes(node),
            4: self._set,
            5: lambda node, _, body: bytes(node.content),
            6: self._symlink,
            9: self._mkdir,
            10: lambda node, _, body: self._remove(node, body[:-1]),
            11: lambda node, _, body: self._remove(node, body[:-1]),
            12: lambda node, _, body: self._rename(node, body[:8], body[8:]),
            13: self._link,
            14: lambda node, _, body: bytes(16),
            15: self._read,
            16: self._write,
            17: lambda node, _, body: struct.pack("=5Q10I", *(1 << 20,) * 5, _BLOCK, 255, _BLOCK, *(0,) * 7),
            18: lambda node, _, body: b"",
            20: lambda node, _, body: b"",
            25: lambda node, _, body: b"",
            26: lambda node, _, body: struct.pack("=4I2H2I2H8I", 7, 31, 0, 0, 9, 9, 1 << 17, 1, *(0,) * 10),
            27: lambda node, _, body: bytes(16),
            28: self._list,
            29: lambda node, _, body: b"",
            30: lambda node, _, body: b"",
            35: self._create,
        }
        """By opcode. An answer raises OSError for a refusal."""

    def serve(self, device: int) -> None:
        while True:
            try:
                message = os.read(device, _BUFFER)
            except OSError as error:
                if error.errno in _GONE:
                    return
                continue
            _, opcode, unique, number, uid, gid, *_ = _IN.unpack_from(message)
            if opcode in {2, 36, 42}:  # FORGET, INTERRUPT and BATCH_FORGET have no answer
                continue
            code, body = 0, b""
            try:
                answer = self._answers.get(opcode)
                if answer is None:
                    raise OSError(errno.ENOSYS, "")
                body = answer(self._nodes.get(number or 1, self._nodes[1]), (uid, gid), message[_IN.size :])
            except OSError as error:
                code = -(error.errno or errno.EIO)
            os.write(device, _OUT.pack(_OUT.size + len(body), code, unique) + body)

    def _new(self, mode: int, uid: int, gid: int) -> _Node:
        now = time.time_ns()
        node = _Node(next(self._numbers), mode, uid, gid, accessed=now, modified=now, changed=now)
        self._nodes[node.number] = node
        return node

    def _child(self, node: _Node, name: bytes) -> _Node:
        found = node.children.get(_normal(name))
        if found is None:
            raise OSError(errno.ENOENT, "")
        return found

    def _add(self, node: _Node, name: bytes, child: _Node) -> bytes:
        if _normal(name) in node.children:
            raise OSError(errno.EEXIST, "")
        node.children[_normal(name)] = child
        node.given[_normal(name)] = name
        node.modified = child.changed = time.time_ns()
        return self._entry(child)

    def _entry(self, node: _Node) -> bytes:
        return struct.pack("=4Q2I", node.number, 0, 0, 0, 0, 0) + self._attributes(node)[16:]

    def _attributes(self, node: _Node) -> bytes:
        times = (node.accessed, node.modified, node.changed)
        size = len(node.content)
        return bytes(16) + _ATTRIBUTES.pack(
            node.number, size, -(-size // 512), *(at // 10**9 for at in times), *(at % 10**9 for at in times),
            node.mode, node.links, node.uid, node.gid, 0, _BLOCK, 0,
        )  # fmt: skip

    def _set(self, node: _Node, _: tuple[int, int], body: bytes) -> bytes:
        valid, _, _, size, _, accessed, modified, _, accessed_ns, modified_ns, _, mode, _, uid, gid, _ = (
            _SET.unpack_from(body)
        )
        now = node.changed = time.time_ns()
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        node.uid, node.gid = uid if valid & 2 else node.uid, gid if valid & 4 else node.gid
        if valid & 8:
            del node.content[size:]
            node.content.extend(bytes(size - len(node.content)))
        if valid & 16:
            node.accessed = now if valid & 128 else accessed * 10**9 + accessed_ns
        if valid & 32:
            node.modified = now if valid & 256 else modified * 10**9 + modified_ns
        return self._attributes(node)

    def _symlink(self, node: _Node, owner: tuple[int, int], body: bytes) -> bytes:
        name, target, _ = body.split(b"\0")
        made = self._new(stat.S_IFLNK | 0o777, *owner)
        made.content.extend(target)
        return self._add(node, name, made)

    def _mkdir(self, node: _Node, owner: tuple[int, int], body: bytes) -> bytes:
        (mode,) = struct.unpack_from("=I", body)
        return self._add(node, body[8:-1], self._new(stat.S_IFDIR | stat.S_IMODE(mode), *owner))

    def _create(self, node: _Node, owner: tuple[int, int], body: bytes) -> bytes:
        _, mode = struct.unpack_from("=II", body)
        return self._add(node, body[16:-1], self._new(stat.S_IFREG | stat.S_IMODE(mode), *owner)) + bytes(16)

    def _link(self, node: _Node, _: tuple[int, int], body: bytes) -> bytes:
        child = self._nodes[struct.unpack_from("=Q", body)[0]]
        child.links += 1
        return self._add(node, body[8:-1], child)

    def _remove(self, node: _Node, name: bytes) -> bytes:
        child = self._child(node, name)
        if child.children:
            raise OSError(errno.ENOTEMPTY, "")
        del node.children[_normal(name)]
        child.links -= 1
        node.modified = child.changed = time.time_ns()
        return b""

    def _rename(self, node: _Node, there: bytes, names: bytes) -> bytes:
        old, new, _ = names.split(b"\0")
        directory, child = self._nodes[struct.unpack("=Q", there)[0]], self._child(node, old)
        if directory.children.get(_normal(new)) is not None:
            self._remove(directory, new)
        del node.children[_normal(old)]
        self._add(directory, new, child)
        return b""

    def _read(self, node: _Node, _: tuple[int, int], body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        return bytes(node.content[offset : offset + size])

    def _write(self, node: _Node, _: tuple[int, int], body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        node.content.extend(bytes(max(0, offset - len(node.content))))
        node.content[offset : offset + size] = body[40 : 40 + size]
        node.modified = node.changed = time.time_ns()
        return struct.pack("=II", size, 0)

    def _list(self, node: _Node, _: tuple[int, int], body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("=QQI", body)
        found = b""
        for at, (normal, child) in enumerate(list(node.children.items())[offset:], offset + 1):
            name = node.given[normal] if self._preserving else normal
            entry = struct.pack("=QQII", child.number, at, len(name), child.mode >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


@contextmanager
def normalising_mounted(point: Path, *, preserving: bool = False) -> Iterator[Path]:
    """It, mounted at `point`. Fails, not skips, where that is not possible."""
    point.mkdir(parents=True)
    words = [sys.executable, "-m", __name__, str(point), *(["preserving"] if preserving else [])]
    serving = subprocess.Popen(words, cwd=TOP)
    try:
        end = time.monotonic() + 20
        while not point.is_mount():
            if serving.poll() is not None or time.monotonic() > end:
                pytest.fail("these tests need root and /dev/fuse")
            time.sleep(0.01)
        yield point
    finally:
        subprocess.run(["umount", "-l", point], check=False)
        serving.kill()
        serving.wait()


def main() -> None:
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions" % device
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"double", os.fsencode(sys.argv[1]), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _Double(preserving=sys.argv[2:] == ["preserving"]).serve(device)


if __name__ == "__main__":
    main()
