"""SmallCopies: small files written aside together for the names they come back to, in C on Linux.

A copy that meets any difficulty is left to CopiedReturn.stage, which handles and names every case. Without
the C part all are.
"""

from __future__ import annotations

import os
from array import array
from contextlib import suppress

from rdc.files.base.access_acl import has_default_acl
from rdc.files.bulk.small_files import TEMPORARY_BYTES, extension
from rdc.files.depth.depth import RowsSeen
from rdc.files.facts.open_file_xattrs import write_attributes
from rdc.model.attributes import ACCESS_ACL
from rdc.model.entries import little_endian
from rdc.model.times import is_distant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rdc.files.names.return_name import CopiedReturn

__all__ = ["SmallCopies"]

_extension = extension()

"""Nanoseconds. Other times are set alone."""


class SmallCopies:
    """Complete copies, under temporary names until their returns take them. A context manager that closes
    them."""

    def __init__(self, returns: Sequence[CopiedReturn]) -> None:
        """Stage those of the returns that have their content in memory and need nothing special. Each of
        these adopts its copy."""
        self.staged: list[CopiedReturn] = []
        self._fds = array("i")
        refusing: dict[int, bool] = {}
        chosen = [one for one in returns if _is_usual(one, refusing)]
        if _extension is None or not chosen:
            return
        for one in chosen:
            one.root.spend(one.path, len(one.content or b""), entries=1)
        metadata = [one.returned.metadata for one in chosen]
        contents = [one.content or b"" for one in chosen]
        depth = chosen[0].root.depths.writing
        packed, temporaries, seen = _extension.stage_small(
            array("i", [one.directory.fd for one in chosen]),
            b"".join([one.name + b"\0" for one in chosen]),
            little_endian(array("Q", map(len, contents))),
            little_endian(array("q", [one.mtime_ns for one in metadata])),
            little_endian(array("H", [one.mode for one in metadata])),
            little_endian(array("I", [one.uid for one in metadata])),
            little_endian(array("I", [one.gid for one in metadata])),
            True,
            b"".join(contents),
            0,
            os.urandom(4 * len(chosen)),
            None,
            0,
            depth.now,
        )
        depth.saw(RowsSeen(*seen))
        self._fds = array("i", packed)
        for row, one in enumerate(chosen):
            fd = self._fds[row]
            if fd < 0:
                continue
            temporary = temporaries[row * TEMPORARY_BYTES : (row + 1) * TEMPORARY_BYTES - 1]
            one.adopt(temporary, fd)
            try:
                write_attributes(fd, one.returned.attributes)
                os.utime(fd, ns=(one.returned.atime_ns, one.returned.metadata.mtime_ns))
            except OSError:
                one.drop()  # it is made again, alone
                continue
            self.staged.append(one)

    @property
    def fds(self) -> list[int]:
        """The descriptors of all copies."""
        return [fd for fd in self._fds if fd >= 0]

    def close(self) -> None:
        """Close the copies. Those that were not taken are removed by their returns."""
        fds, self._fds = self._fds, array("i")
        for fd in fds:
            if fd >= 0:
                with suppress(OSError):  # durable already
                    os.close(fd)

    def __enter__(self) -> SmallCopies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_usual(one: CopiedReturn, refusing: dict[int, bool]) -> bool:
    """Whether a copy can be made among others. `refusing`: by descriptor of a directory, whether new files in
    it get an ACL, which would admit others for a moment."""
    root, returned = one.root, one.returned
    if one.content is None or root.append_only or root.undo is not None or root.stages_singly:
        return False
    if root.sheds_acls or is_distant(returned.metadata.mtime_ns):
        return False
    if any(name == ACCESS_ACL for name, _ in returned.attributes):
        return False
    if not root.may_spend(len(one.content), entries=1):
        return False
    fd = one.directory.fd
    if fd not in refusing:
        try:
            refusing[fd] = has_default_acl(one.directory)
        except OSError:
            refusing[fd] = True
    return not refusing[fd]
