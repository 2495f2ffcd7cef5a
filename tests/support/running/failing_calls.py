"""Runs a function in a child. The kernel hands each of its system calls on files to this process, which
counts them and has some fail: of Python code, C code and libraries alike.

seccomp's user notifications do it (seccomp_unotify(2)); no right is needed.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import socket
import struct
import traceback
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CALLS", "Fault", "Made", "with_fault"]

_X86 = platform.machine() == "x86_64"

# By name: the number on x86-64, the number on later architectures, and errors of failing disks, full ones,
# limits and missing rights. None of these says that an entry vanished.
_KNOWN: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "openat": (257, 56, (errno.EIO, errno.EACCES, errno.EPERM)),
    "openat2": (437, 437, (errno.EIO, errno.EACCES)),
    "pread64": (17, 67, (errno.EIO, errno.EINVAL)),
    "preadv": (295, 69, (errno.EIO,)),
    "getdents64": (217, 61, (errno.EIO,)),
    "newfstatat": (262, 79, (errno.EIO, errno.EACCES)),
    "statx": (332, 291, (errno.EIO, errno.EACCES)),
    "readlinkat": (267, 78, (errno.EIO,)),
    "pwrite64": (18, 68, (errno.EIO, errno.ENOSPC, errno.EFBIG)),
    "copy_file_range": (326, 285, (errno.EIO, errno.ENOSPC)),
    "ftruncate": (77, 46, (errno.EIO, errno.EFBIG)),
    "fallocate": (285, 47, (errno.EIO, errno.ENOSPC, errno.EFBIG)),
    "fsync": (74, 82, (errno.EIO, errno.ENOSPC)),
    "syncfs": (306, 267, (errno.EIO,)),
    "mkdirat": (258, 34, (errno.EIO, errno.ENOSPC, errno.EPERM)),
    "symlinkat": (266, 36, (errno.EIO, errno.EPERM, errno.ENAMETOOLONG)),
    "linkat": (265, 37, (errno.EIO, errno.EPERM, errno.EMLINK)),
    "renameat": (264, 38, (errno.EIO, errno.EPERM, errno.ENOSPC)),
    "renameat2": (316, 276, (errno.EIO, errno.EPERM, errno.ENAMETOOLONG)),
    "unlinkat": (263, 35, (errno.EIO, errno.EPERM, errno.EBUSY)),
    "fchmod": (91, 52, (errno.EIO, errno.EPERM)),
    "fchmodat": (268, 53, (errno.EIO, errno.EPERM)),
    "fchmodat2": (452, 452, (errno.EIO, errno.EPERM)),
    "fchown": (93, 55, (errno.EIO, errno.EPERM)),
    "fchownat": (260, 54, (errno.EIO, errno.EPERM)),
    "utimensat": (280, 88, (errno.EIO, errno.EPERM)),
    "flock": (73, 32, (errno.EIO, errno.ENOLCK)),
}
CALLS = {name: numbers[0 if _X86 else 1] for name, numbers in _KNOWN.items()}
_NAMES = {number: name for name, number in CALLS.items()}

_SECCOMP, _PR_SET_NO_NEW_PRIVS = (317 if _X86 else 277), 38
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_EMPTY_PATH = 0x1000


@dataclass(frozen=True)
class Fault:
    """A fault: from call number `at` on, `times` calls of one name fail, with one of that call's possible
    errors."""

    at: int
    times: int = 1
    choice: int = 0


@dataclass(frozen=True)
class Made:
    """The result of the child's function, and the names of the calls that it made."""

    value: list[str]
    calls: list[str]
    failed: list[tuple[str, int]]
    """Those that failed, with their errors."""


Witness = Callable[[str, int], None]
"""Receives the name of each call before it is made and the id of its thread, which waits."""


def with_fault(
    work: Callable[[], list[str]], fault: Fault | None = None, witness: Witness | None = None
) -> Made:
    """Run `work` in a child. Raises AssertionError, with the traceback there, if that raises anything."""
    here, there = socket.socketpair()
    child = os.fork()
    if not child:
        here.close()
        _be_watched(there, work)
    there.close()
    try:
        supervisor = _Supervisor(fault, witness)
        _, ancillary, _, _ = here.recvmsg(1, socket.CMSG_SPACE(4))
        listener = array.array("i", ancillary[0][2])[0]
        try:
            answer = supervisor.watch(listener, here)
        finally:
            os.close(listener)
    finally:
        here.close()
        os.waitpid(child, 0)
    value, trace = json.loads(answer)
    assert not trace, f"{supervisor.failed}: {trace}"
    return Made(value, supervisor.calls, supervisor.failed)


def _be_watched(line: socket.socket, work: Callable[[], list[str]]) -> None:
    """The child's whole life."""
    try:
        listener = _listen()
        socket.send_fds(line, [b"l"], [listener])
        os.close(listener)
        try:
            answer = [work(), ""]
        except BaseException:  # noqa: BLE001 - the parent tells it
            answer = [[], traceback.format_exc()]
        line.sendall(json.dumps(answer).encode())
        line.close()
    finally:
        os._exit(0)


def _listen() -> int:
    program = struct.pack("=HBBI", _LOAD, 0, 0, 0)
    for number in CALLS.values():
        program += struct.pack("=HBBI", _JUMP_EQUAL, 0, 1, number)
        program += struct.pack("=HBBI", _RETURN, 0, 0, _NOTIFY)
    program += struct.pack("=HBBI", _RETURN, 0, 0, _ALLOW)
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener: int = libc.syscall(_SECCOMP, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.c_char_p(header))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


class _Supervisor:
    def __init__(self, fault: Fault | None, witness: Witness | None) -> None:
        self._fault = fault
        self._witness = witness
        self._failing: str | None = None
        self._left = 0
        self.calls: list[str] = []
        self.failed: list[tuple[str, int]] = []

    def watch(self, listener: int, line: socket.socket) -> bytes:
        """Decide about each call until the child has answered. Returns its answer."""
        poll, answer = select.poll(), b""
        poll.register(listener, select.POLLIN)
        poll.register(line, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == line.fileno():
                    part = line.recv(1 << 16)
                    if not part:
                        return answer
                    answer += part
                else:
                    self._decide(listener)

    def _decide(self, listener: int) -> None:
        request = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, request)
        except OSError:
            return  # the thread that called is gone
        (ident,) = struct.unpack_from("=Q", request)
        thread, _, number = struct.unpack_from("=IIi", request, 8)
        (flags,) = struct.unpack_from("=Q", request, 32 + 8 * 3)
        if self._witness is not None:
            self._witness(_NAMES[number], thread)
        # What is open can be looked at.
        looks = number == CALLS["newfstatat"] and flags & _EMPTY_PATH
        refused = 0 if looks else self._refused(_NAMES[number])
        response = struct.pack("=Qqii", ident, 0, -refused, 0 if refused else _CONTINUE)
        try:
            fcntl.ioctl(listener, _SEND, response)
        except OSError:
            return

    def _refused(self, name: str) -> int:
        """The error of this call; 0 for none."""
        number = len(self.calls)
        self.calls.append(name)
        if self._fault is None:
            return 0
        if number == self._fault.at:
            self._failing, self._left = name, self._fault.times
        if name != self._failing or not self._left:
            return 0
        self._left -= 1
        errors = _KNOWN[name][2]
        chosen = errors[self._fault.choice % len(errors)]
        self.failed.append((name, chosen))
        return chosen
