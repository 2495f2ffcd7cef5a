"""Results of a sync."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.enums import Enum
from rdc.lean.records import Record, Report, field

TYPE_CHECKING = False


if TYPE_CHECKING:
    pass


class Purpose(Enum):
    """The purpose of a message."""

    MANIFEST = "manifest"
    """The existing entries, and the differing ones."""
    ROOTS = "roots"
    """The files that differ, or that were renamed."""
    NODES = "nodes"
    """The chunks of a file that differ."""
    BLOCKS = "sub-chunks"
    """The parts of a chunk that differ."""
    LITERALS = "literals"
    """Content."""
    OVERHEAD = "overhead"
    """Openings, reports, framing."""


class SyncReport(Report, Record):
    """The result of `rdc.sync`. Sizes are in bytes.

    >>> import os, rdc
    >>> os.mkdir("src")
    >>> report = rdc.sync("src/", "copy/", catalog=None)
    >>> report.files, report.errors, report.exit
    (0, 0, <ExitCode.OK: 0>)
    """

    files: int
    """Regular files of the source after filters."""
    total_bytes: int
    """Bytes of these files."""
    changed: int
    """Entries created or changed at the destination, done or (in a dry run) planned."""
    deleted: int
    moved: int
    """Files that were renamed at the destination; they are among `changed`."""
    bytes_sent: int
    """All bytes that this process wrote to the transport, with framing; to both, between two other hosts."""
    bytes_received: int
    literal_bytes: int
    """Bytes of file content sent, before compression."""
    reused_bytes: int
    """Bytes of changed files that were found at the destination."""
    round_trips: int
    errors: int
    exit: ExitCode
    by_kind: tuple[MessageCost, ...] = field(default=())
    created: int = 0
    """The changed entries that the destination did not have, done or planned."""
    entries: int = 0
    """Entries of all kinds of the source after filters."""

    @property
    def updated(self) -> int:
        """The changed entries that the destination had already, without the moved ones."""
        return max(0, self.changed - self.created - self.moved)

    @property
    def unchanged(self) -> int:
        """The entries of the source that were left as they are at the destination."""
        return max(0, self.entries - self.changed)

    @property
    def content_bytes(self) -> int:
        """The size of the new, updated and moved files: what a copy without a search would have sent."""
        return self.literal_bytes + self.reused_bytes

    @property
    def by_purpose(self) -> dict[Purpose, int]:
        """Bytes on the connection in both directions; the sum is bytes_sent + bytes_received."""
        return {
            purpose: sum(cost.bytes for cost in self.by_kind if cost.purpose is purpose)
            for purpose in Purpose
        }


class MessageCost(Record):
    """The cost of one kind of message in both directions."""

    name: str
    count: int
    bytes: int
    """Bytes on the connection, with framing and compression. All kinds add up to the total."""
    plain: int
    """Bytes before compression."""
    purpose: Purpose


DEFAULT_SHARE = 50
"""Per cent of the destination's entries beyond which a run with --delete asks on a terminal."""

_SIGN = " entries would go, more than --guard="
_CHANGE_SIGN = " entries would change, more than --guard="


def stopped_text(done: str, going: int, total: int, share: int) -> str:
    """Return the line about a stopped run. `done`: "changed" or "deleted"."""
    sign = _CHANGE_SIGN if done == "changed" else _SIGN
    return f"nothing was {done}: {going:,} of {total:,}{sign}{share}%"


def is_stop(event: object) -> bool:
    """Return whether an event is that line. It may come from the remote side, so it leads to a question at
    most."""
    from rdc.progress import Problem

    if not isinstance(event, Problem) or event.code is not ExitCode.MAX_DELETE:
        return False
    return _SIGN in event.message or _CHANGE_SIGN in event.message
