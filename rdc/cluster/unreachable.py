"""The error for an engine that cannot be reached."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError, one_line, printable

__all__ = ["unreachable"]


def unreachable(kind: str, address: str, error: Exception) -> RdcError:
    # An engine's message may have a traceback of another process behind it; its last line has the reason.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = one_line(": ".join(dict.fromkeys([*lines[:1], *lines[-1:]])))[:400]
    # A server of Ray does not answer a client without its token.
    what = "host, port and token" if kind == "ray" else "host and port"
    return RdcError(
        f"{kind}://{printable(address)}: expected a scheduler, found none: {text}; check {what}",
        code=ExitCode.UNREACHABLE,
    )
