"""Lets the kernel refuse this process and its children calls, with an errno of the caller's choice: what a
container's filter does, a file system that has no such thing, or a system that is not Linux.

python -m tests.support.running.refused_calls CALLS:ERRNO MODULE ARGUMENT... runs another module so.
LINUX:ENOSYS refuses what Linux alone has. The kernel refuses, so C code and libraries meet it as Python does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import runpy
import struct
import sys

__all__ = ["refuse"]

_X86 = platform.machine() == "x86_64"


def _here(x86: int, other: int) -> int:
    """The number of a call on x86-64, and on the architectures that came after it."""
    return x86 if _X86 else other


_BY_NAME = (463, 464, 465, 466)
"""setxattrat, getxattrat, listxattrat, removexattrat."""

_LINUX = (
    *_BY_NAME,
    425,  # io_uring_setup
    434,  # pidfd_open
    436,  # close_range
    437,  # openat2
    452,  # fchmodat2
    _here(221, 223),  # fadvise64
    _here(253, 26),  # inotify_init; the newer architectures have inotify_init1 alone
    _here(275, 76),  # splice
    _here(276, 77),  # tee
    _here(277, 84),  # sync_file_range
    _here(278, 75),  # vmsplice
    _here(285, 47),  # fallocate
    _here(290, 19),  # eventfd2
    _here(291, 20),  # epoll_create1
    _here(294, 26),  # inotify_init1
    _here(300, 262),  # fanotify_init
    _here(303, 264),  # name_to_handle_at
    _here(306, 267),  # syncfs
    _here(316, 276),  # renameat2
    _here(319, 279),  # memfd_create
    _here(326, 285),  # copy_file_range
    _here(332, 291),  # statx
)
_CALLS = {
    "BY_NAME": _BY_NAME,
    "GET_BY_NAME": (464,),
    "LIST_BY_NAME": (465,),
    "GET": (464, _here(192, 9)),  # getxattrat, lgetxattr
    "LIST": (465, _here(195, 12)),  # listxattrat, llistxattr
    "LINUX": _LINUX,
}

_COMMANDS = {
    "LINUX": {
        _here(16, 29): (  # ioctl
            0x40049409,  # FICLONE
            0x4020940D,  # FICLONERANGE
            0xC0189436,  # FIDEDUPERANGE
            0xC020660B,  # FS_IOC_FIEMAP
        ),
        _here(72, 25): (
            1024,
            1025,
            1026,
            1031,
            1032,
            1033,
            1034,
        ),  # fcntl: leases, F_NOTIFY, pipe sizes, seals
    }
}
"""By call, the commands that it refuses; the other commands of the call pass."""

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06  # of linux/filter.h: BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_CALL_AT, _COMMAND_AT = 0, 24
"""Where struct seccomp_data has the call's number, and the low half of its second argument."""


def refuse(what: str) -> None:
    """Refuse these calls from now on: CALLS:ERRNO. This cannot be taken back."""
    calls, name = what.split(":")
    program = _program(_CALLS[calls], _COMMANDS.get(calls, {}), getattr(errno, name))
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    install = (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0)
    # Without the right to it, only who gives up set-id programs may have a filter.
    if libc.prctl(*install) and (libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(*install)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _program(calls: tuple[int, ...], commands: dict[int, tuple[int, ...]], number: int) -> bytes:
    program = _instruction(_LOAD, _CALL_AT) + _refusals(calls, number)
    for call, refused in commands.items():
        inner = _instruction(_LOAD, _COMMAND_AT) + _refusals(refused, number) + _instruction(_RETURN, _ALLOW)
        program += _instruction(_JUMP_EQUAL, call, otherwise=len(inner) // 8) + inner
    return program + _instruction(_RETURN, _ALLOW)


def _refusals(values: tuple[int, ...], number: int) -> bytes:
    return b"".join(
        _instruction(_JUMP_EQUAL, value, otherwise=1) + _instruction(_RETURN, _ERRNO | number)
        for value in values
    )


def _instruction(code: int, operand: int, *, otherwise: int = 0) -> bytes:
    """`otherwise`: how many instructions a comparison skips that does not hold."""
    return struct.pack("=HBBI", code, 0, otherwise, operand)


if __name__ == "__main__":
    refuse(sys.argv.pop(1))
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
