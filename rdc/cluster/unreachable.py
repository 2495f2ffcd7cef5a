"""The error for an engine that cannot be reached."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError, one_line, printable

__all__ = ["unreachable"]


def unreachable(kind: str, address: str, error: Exception) -> RdcError:
    text = one_line(str(error).partition("\n")[0])
    return RdcError(
        f"{kind}://{printable(address)}: expected a scheduler, found none: {text}; check host and port",
        code=ExitCode.UNREACHABLE,
    )
