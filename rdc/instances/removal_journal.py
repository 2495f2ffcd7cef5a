"""The journal of removed duplicates: what `rdc dedupe --undo` needs to bring each of them back.

INSTANCES.md, "Removed duplicates", defines the format.
"""

from __future__ import annotations

from collections.abc import Iterable

from rdc.errors import FileError
from rdc.files.base.relative_path import check_path
from rdc.files.names.displaced_names import displaced_name
from rdc.instances.journal_lines import Fields, JournalFile, LineReader, encoded, journal_lines
from rdc.model.entries import Metadata
from rdc.model.instances import Action
from rdc.model.removal import REMOVALS
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.attributes import Attributes

__all__ = ["RemovalJournal", "RemovalRecord", "is_removal_journal", "read_removal_journal"]

NAME, VERSION = "rdc dupes", 1

_PATHS = ("top", "path", "kept_top", "kept")
_NUMBERS = ("inode", "size", "mode", "uid", "gid", "mtime_ns", "atime_ns")
_FIELDS = frozenset((*_PATHS, *_NUMBERS, "action", "to_top", "to", "digest", "attributes"))
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class RemovalRecord:
    """One name that a duplicate lost, or was about to lose."""

    action: Action
    top: bytes
    """Absolute path of the tree that contains the name."""
    path: bytes
    """Path relative to `top`."""
    original_top: bytes
    """Absolute path of the tree that contains the file that stays."""
    original: bytes
    """Path of that file relative to `original_top`."""
    destination_top: bytes
    """Absolute path of the directory that `move` fills; otherwise empty."""
    destination: bytes
    """Path relative to `destination_top`, or the text of the symbolic link; otherwise empty."""
    inode: int
    """Inode number of the file that loses its name."""
    size: int
    digest: bytes
    """BLAKE3 of its content."""
    metadata: Metadata
    atime_ns: int
    attributes: Attributes

    @property
    def displaced_name(self) -> bytes:
        """The name beside `path` that the file has while it leaves."""
        return displaced_name(self.path.rpartition(b"/")[2], self.size, self.metadata)

    @property
    def displaced(self) -> bytes:
        """The absolute path of that name."""
        directory = b"/".join((self.top.rstrip(b"/"), self.path)).rpartition(b"/")[0]
        return directory + b"/" + self.displaced_name


class RemovalJournal(JournalFile):
    """A journal of removed duplicates."""

    def __init__(self, path: bytes, pointer: bytes | None = None) -> None:
        super().__init__(path, NAME, VERSION, pointer)

    def write(self, records: Iterable[RemovalRecord]) -> None:
        """Appends records and returns when they are on disk. Raises RdcError."""
        self.append(map(_fields, records))


def is_removal_journal(path: bytes) -> bool:
    """Whether a journal is one of removed duplicates. Raises FileError for a file that is no journal."""
    lines = journal_lines(path)
    return bool(lines) and LineReader(path).fields(lines[0], 1).get("journal") == NAME


def read_removal_journal(path: bytes) -> list[RemovalRecord]:
    """The records in the order of the run. Raises FileError as `read_journal` does."""
    lines = journal_lines(path)
    reader = _Reader(path)
    if not lines or reader.fields(lines[0], 1) != {"journal": NAME, "v": VERSION}:
        raise reader.error(1, f"the first line of a journal of version {VERSION}")
    return [reader.record(line, number) for number, line in enumerate(lines[1:], 2)]


def _fields(record: RemovalRecord) -> Fields:
    metadata = record.metadata
    return {
        "action": record.action.value,
        "top": encoded(record.top),
        "path": encoded(record.path),
        "kept_top": encoded(record.original_top),
        "kept": encoded(record.original),
        "to_top": encoded(record.destination_top),
        "to": encoded(record.destination),
        "inode": record.inode,
        "size": record.size,
        "digest": record.digest.hex(),
        "mode": metadata.mode,
        "uid": metadata.uid,
        "gid": metadata.gid,
        "mtime_ns": metadata.mtime_ns,
        "atime_ns": record.atime_ns,
        "attributes": [encoded(part) for pair in record.attributes for part in pair],
    }


class _Reader(LineReader):
    def record(self, line: bytes, number: int) -> RemovalRecord:
        fields = self.fields(line, number)
        if fields.keys() != _FIELDS or fields["action"] not in {action.value for action in REMOVALS}:
            raise self.error(number, "the fields of a removed duplicate")
        action = Action(fields["action"])
        top, path, original_top, original = (self.path(fields[name], number) for name in _PATHS)
        destination_top, destination = self.data(fields["to_top"], number), self.data(fields["to"], number)
        if action is not Action.DELETE:
            destination = self.path(fields["to"], number)
        inside = [path, original]
        tops = [top, original_top]
        if action is Action.MOVE:
            inside.append(destination)
            tops.append(destination_top)
        try:
            for one in inside:
                check_path(one)
        except FileError as error:
            raise self.error(number, "a path below its directory") from error
        if not all(one.startswith(b"/") for one in tops):
            raise self.error(number, "absolute paths of directories")
        numbers = {name: self.number(fields[name], number) for name in _NUMBERS}
        if not self._in_bounds(numbers):
            raise self.error(number, "a size, times, a mode and an owner within their bounds")
        metadata = Metadata(numbers["mode"], numbers["mtime_ns"], numbers["uid"], numbers["gid"])
        return RemovalRecord(
            *(action, top, path, original_top, original, destination_top, destination),
            *(numbers["inode"], numbers["size"], self._digest(fields["digest"], number)),
            *(metadata, numbers["atime_ns"], self._attributes(fields["attributes"], number)),
        )

    def _in_bounds(self, numbers: dict[str, int]) -> bool:
        times = all(-(1 << 63) <= numbers[name] < 1 << 63 for name in ("mtime_ns", "atime_ns"))
        owners = all(0 <= numbers[name] < 1 << 32 for name in ("uid", "gid"))
        return times and owners and 0 <= numbers["mode"] <= 0o7777 and 0 <= numbers["size"] < 1 << 63

    def _digest(self, value: object, number: int) -> bytes:
        try:
            digest = bytes.fromhex(value) if isinstance(value, str) else b""
        except ValueError:
            digest = b""
        if len(digest) != _DIGEST_BYTES:
            raise self.error(number, "a digest")
        return digest

    def _attributes(self, value: object, number: int) -> Attributes:
        if not isinstance(value, list) or len(value) % 2:
            raise self.error(number, "names and values of attributes")
        parts = [self.data(part, number) for part in value]
        return tuple(zip(parts[::2], parts[1::2], strict=True))
