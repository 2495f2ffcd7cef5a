"""Tells a page of an earlier scan from any other file, which --html must not overwrite."""

from __future__ import annotations

import os
import stat

from rdc.errors import ExitCode, RdcError, printable

__all__ = ["check_page"]

MARK = b"<title>rdc scan</title>"
"""In the head of each page; page.html has it."""

HEAD_BYTES = 4096


def check_page(path: str) -> None:
    """Raises RdcError if `path` is a file with content that is no page of a scan."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = error.strerror
    else:
        if not head or MARK in head:
            return
        reason = "it is no page of a scan"
    raise RdcError(
        f"{printable(os.fsencode(path))}: --html would overwrite it, but {reason}; name another file",
        code=ExitCode.FILE_IO,
    )
