"""The exit code of an error at the destination."""

from __future__ import annotations

from rdc.errors import ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import FileError

__all__ = ["writing_code"]


def writing_code(error: FileError) -> ExitCode:
    """Maps exit code 24, which is about source files, to 23. Any other code stays."""
    return ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
