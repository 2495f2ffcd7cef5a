"""Every error rdc raises on purpose: whose fault it is, what was expected and found, and its exit code.

Exit codes are rsync's where rsync has one (rsync(1), EXIT VALUES).
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "CommandMissingError",
    "ExitCode",
    "FileChangedError",
    "FileError",
    "IncompatiblePeerError",
    "OutOfSpaceError",
    "ProtocolError",
    "RdcError",
    "StreamError",
    "TrustError",
    "UsageError",
    "printable",
    "worse",
]


class ExitCode(IntEnum):
    """Process exit codes, also the `code` of a JSON error event."""

    OK = 0
    USAGE = 1
    INCOMPATIBLE = 2
    REFUSED = 5
    UNREACHABLE = 10
    FILE_IO = 11
    STREAM = 12
    INTERRUPTED = 20
    PARTIAL = 23
    VANISHED = 24
    MAX_DELETE = 25
    TIMEOUT = 30
    CONNECT_TIMEOUT = 35
    BUSY = 40
    COMMAND_MISSING = 127


def worse(before: ExitCode, now: ExitCode) -> ExitCode:
    """The exit code of a run with both: what could not be read or done outweighs what went away by itself."""
    return before if now is ExitCode.OK or before is ExitCode.PARTIAL else now


def printable(text: str | bytes) -> str:
    """`text` on one line for a person: control characters and bytes that are not UTF-8 as \\xNN escapes.

    Names come from hostile trees; printed raw they could move the cursor or forge output lines.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text  # nearly every name, and lists have many
    out = []
    for ch in text:
        code = ord(ch)
        if 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\x{code - 0xDC00:02x}")
        elif ch.isprintable():
            out.append(ch)
        elif code < 0x100:
            out.append(f"\\x{code:02x}")
        else:
            out.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(out)


class RdcError(Exception):
    """Base of all deliberate errors: `str(error)` is one printable line, `code` the process's exit code."""

    code: ExitCode = ExitCode.PARTIAL

    def __init__(self, message: str, *, code: ExitCode | None = None) -> None:
        super().__init__(printable(message))
        if code is not None:
            self.code = code


class UsageError(RdcError):
    """The caller asked for something that makes no sense; nothing was done."""

    code = ExitCode.USAGE


class IncompatiblePeerError(RdcError):
    """The far side is not rdc, or speaks another version or other parameters."""

    code = ExitCode.INCOMPATIBLE


class StreamError(RdcError):
    """The byte stream to the peer ended early."""

    code = ExitCode.STREAM

    def __init__(self, message: str, *, before_hello: bool = False) -> None:
        super().__init__(message)
        self.before_hello = before_hello
        """The far side never said a word: whoever started it may know better why (exit status 127)."""


class ProtocolError(StreamError):
    """The peer sent bytes that the protocol does not allow: garbled, out of order, or past a limit."""


class TrustError(RdcError):
    """One side of a connection does not know the other, or may not do for it what it asked: nothing was
    done."""

    code = ExitCode.REFUSED


class CommandMissingError(RdcError):
    """The remote shell found no rdc on the far side."""

    code = ExitCode.COMMAND_MISSING


class OutOfSpaceError(RdcError):
    """Disk full, quota or read-only destination: the run stops, old files stay as they are."""

    code = ExitCode.FILE_IO


class FileError(RdcError):
    """One file could not be read or written; the run goes on and ends with exit code 23."""

    code = ExitCode.PARTIAL

    def __init__(self, path: bytes, message: str, *, code: ExitCode | None = None) -> None:
        super().__init__(message, code=code)
        self.path = path


class FileChangedError(FileError):
    """A source file vanished or changed while it was read; the run goes on and ends with exit code 24."""

    code = ExitCode.VANISHED
