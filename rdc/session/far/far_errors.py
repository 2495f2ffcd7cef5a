"""The errors to show for the end of a connection to a far side."""

from __future__ import annotations

from rdc.errors import CommandMissingError, ProtocolError, RdcError, StreamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.location import RemoteShell

__all__ = ["explained_end", "resumable"]


def explained_end(error: StreamError, host: str, shell: RemoteShell, status: int | None) -> RdcError:
    """The error to show for an ended stream. `status`: the remote shell's exit status, if known."""
    if error.before_hello and status in {126, 127}:
        return CommandMissingError(
            f"no {shell.program} on {host}: install it there (rdc install {host})"
            " or name its path with --remote-path"
        )
    if error.before_hello and status:
        return StreamError(
            f"{shell.command[0]} {host} ended with status {status} before rdc answered; its message is above",
            before_hello=True,
        )
    return error


def resumable(error: RdcError, *, dry_run: bool) -> RdcError:
    """`error`; that of a cut line says that nothing of what arrived is lost."""
    if not isinstance(error, StreamError) or isinstance(error, ProtocolError):
        return error
    if error.before_hello or dry_run:
        return error
    said = StreamError(f"{error}; the next run resumes where this one ended")
    said.code = error.code
    return said
