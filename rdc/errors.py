"""All errors that rdc raises on purpose, and the exit codes of the command.

An error names what was expected and what was found. Exit codes follow rsync where rsync has one (rsync(1),
EXIT VALUES).
"""

from __future__ import annotations

from os import fsdecode

from rdc.lean.enums import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the process; also the `code` of a JSON error event.

    >>> import rdc
    >>> rdc.ExitCode.PARTIAL, int(rdc.ExitCode.PARTIAL)
    (<ExitCode.PARTIAL: 23>, 23)
    """

    OK = 0
    USAGE = 1
    DIFFERENT = 1
    """The trees of `rdc check` differ. A wrong command line of that verb is CHECK_USAGE."""
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
    CONFLICTS = 41
    CHECK_USAGE = 64
    COMMAND_MISSING = 127


def worse(before: ExitCode, now: ExitCode) -> ExitCode:
    """Return the exit code of a run with both. PARTIAL outweighs all others; else the later failure wins."""
    return before if now is ExitCode.OK or before is ExitCode.PARTIAL else now


# Unicode counts these as letters and marks, but a screen shows nothing. Names that differ only in them would
# look alike.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0").union(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def printable(name: str | bytes) -> str:
    """Return a name as one printable line. Different names give different texts.

    Names come from untrusted trees. Printed raw, they could move the cursor or forge output lines. A byte
    that is not UTF-8 and an ASCII control character become \\xNN. Other invisible characters, and those that
    change the direction of text, become \\uNNNN or \\UNNNNNNNN. A backslash is doubled. Letters that merely
    look like others stay. Use one_line for a text that contains such names.
    """
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    if name.isascii() and name.isprintable():
        return name.replace("\\", "\\\\")  # the fast path of nearly every name
    return _with_escapes(name.replace("\\", "\\\\"))


def one_line(text: str) -> str:
    """Return a message as one printable line. Backslashes stay: those in its names are doubled already."""
    return text if text.isascii() and text.isprintable() else _with_escapes(text)


def _with_escapes(text: str) -> str:
    return "".join(ch if ch.isprintable() and ch not in _UNSEEN else escaped(ch) for ch in text)


def escaped(character: str) -> str:
    """Return \\xNN for an undecodable byte or ASCII, else \\uNNNN or \\UNNNNNNNN."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    elif code >= 0x80:
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return f"\\x{code:02x}"


class WithPath:
    """The base of what names one path. A subclass has it as `path_bytes`."""

    __slots__ = ()
    path_bytes: bytes

    @property
    def path(self) -> str:
        """`path_bytes` as text, as os.fsdecode makes it: os.fsencode gives the bytes back."""
        return fsdecode(self.path_bytes)


class RdcError(Exception):
    """The base of all deliberate errors. `str(error)` is one printable line; `code` is the exit code.

    >>> import rdc
    >>> try:
    ...     rdc.sync("missing/", "copy/", catalog=None)
    ... except rdc.RdcError as error:
    ...     print(error.code.name)
    PARTIAL
    """

    code: ExitCode = ExitCode.PARTIAL

    def __init__(self, message: str, *, code: ExitCode | None = None) -> None:
        super().__init__(one_line(message))
        if code is not None:
            self.code = code


class UsageError(RdcError):
    """The command line or the arguments are invalid. Nothing was changed."""

    code = ExitCode.USAGE


class IncompatiblePeerError(RdcError):
    """The remote side is not rdc, or uses another protocol version or other parameters."""

    code = ExitCode.INCOMPATIBLE


class StreamError(RdcError):
    """The byte stream to the peer ended early."""

    code = ExitCode.STREAM

    def __init__(self, message: str, *, before_hello: bool = False) -> None:
        super().__init__(message)
        self.before_hello = before_hello
        """True if the remote side sent nothing. Its exit status may then give a better reason: 127."""


class ProtocolError(StreamError):
    """The peer broke the protocol: its bytes are malformed, out of order or beyond a limit."""


class TrustError(RdcError):
    """A side does not trust the other one, or denies its request. Nothing was changed."""

    code = ExitCode.REFUSED


class StoppedError(RdcError):
    """The caller asked the job to stop. Every file is complete, either old or new."""

    code = ExitCode.INTERRUPTED

    def __init__(self, message: str = "stopped by the caller") -> None:
        super().__init__(message)


class CommandMissingError(RdcError):
    """The remote shell did not find rdc on the remote side."""

    code = ExitCode.COMMAND_MISSING


class OutOfSpaceError(RdcError):
    """The disk is full, a quota is exceeded or the destination is read-only.

    The run stops; old files stay unchanged.
    """

    code = ExitCode.FILE_IO


class FileError(WithPath, RdcError):
    """One file could not be read or written. The run continues and ends with exit code 23."""

    code = ExitCode.PARTIAL

    def __init__(self, path: bytes, message: str, *, code: ExitCode | None = None) -> None:
        super().__init__(message, code=code)
        self.path_bytes = path


class FileChangedError(FileError):
    """A source file vanished or changed while it was read. The run continues and ends with exit code 24."""

    code = ExitCode.VANISHED
