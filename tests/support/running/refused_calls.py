"""Lets the kernel refuse this process calls for extended attributes, with an errno of the caller's choice:
what a container's filter does, or a file system that has no such thing.

python -m tests.support.running.refused_calls CALLS:ERRNO MODULE ARGUMENT... runs another module so.
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
_CALLS = {
    "BY_NAME": (463, 464, 465, 466),  # setxattrat, getxattrat, listxattrat, removexattrat
    "GET_BY_NAME": (464,),
    "LIST_BY_NAME": (465,),
    "GET": (464, 192 if _X86 else 9),  # getxattrat, lgetxattr
    "LIST": (465, 195 if _X86 else 12),  # listxattrat, llistxattr
}

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06  # of linux/filter.h: BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def refuse(what: str) -> None:
    """From now on, CALLS:ERRNO. There is no way back."""
    calls, name = what.split(":")
    number: int = getattr(errno, name)
    program = struct.pack("=HBBI", _LOAD, 0, 0, 0)  # the call's number is the first word
    for call in _CALLS[calls]:
        program += struct.pack("=HBBI", _JUMP_EQUAL, 0, 1, call)
        program += struct.pack("=HBBI", _RETURN, 0, 0, _ERRNO | number)
    program += struct.pack("=HBBI", _RETURN, 0, 0, _ALLOW)
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    refuse(sys.argv.pop(1))
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
