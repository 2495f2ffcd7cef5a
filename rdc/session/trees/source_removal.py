"""--remove-source-files at the source: what the destination has leaves the source, if it did not change."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.facts.directory_mark import directory_mark
from rdc.files.names.entry_names import UnchangedRemoval
from rdc.model.entries import Identity, Kind, little_endian_integers
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.entries import PackedInodes
    from rdc.progress import Reporter
    from rdc.protocol.messages import Landed
    from rdc.tree.manifest import Manifest

__all__ = ["SourceRemoval"]

_NEVER = (Kind.DIRECTORY, Kind.SPECIAL)


class SourceRemoval:
    """Removes what the destination confirms. Entries are named by their rows in the source's manifest."""

    def __init__(self, root: Root, *, dry: bool) -> None:
        self._root = root
        self._dry = dry
        self._removal = UnchangedRemoval(root)
        self._devices, self._inodes, self._ctimes = array("Q"), array("Q"), array("q")
        """Of each listed entry."""

    def begin(self) -> None:
        """Forgets what was listed, before a new walk."""
        for column in (self._devices, self._inodes, self._ctimes):
            del column[:]

    def note(self, inodes: PackedInodes) -> None:
        """Notes the inodes of the entries that are listed next."""
        self._devices.extend(little_endian_integers("Q", inodes.devices))
        self._inodes.extend(little_endian_integers("Q", inodes.inodes))
        self._ctimes.extend(little_endian_integers("q", inodes.ctimes))

    def take(self, message: Landed, manifest: Manifest, report: Reporter) -> int:
        """Removes these entries, and returns how many are gone. Reports those that stay.

        Raises ProtocolError for entries that no destination may name.
        """
        entries = [manifest.entry(file) for file in message.files]
        parents = {entry.path.rpartition(b"/")[0] for entry in entries}
        if self._dry or len(parents) > 1 or any(entry.kind in _NEVER for entry in entries):
            raise ProtocolError("the far side asked this one to remove what no destination may name")
        gone = 0
        for file, entry in zip(message.files, entries, strict=True):
            mtime_ns, size = entry.metadata.mtime_ns, entry.size
            try:
                directory, _ = self._root.locate(entry.path)
                if directory_mark(directory.fd) == message.mark:
                    raise FileError(
                        entry.path,
                        f"{printable(self._root.shown(entry.path))}: source and destination are one place, so"
                        " it stays; leave out --remove-source-files",
                        code=ExitCode.PARTIAL,
                    )
                identity = Identity(
                    self._devices[file], self._inodes[file], size, mtime_ns, self._ctimes[file]
                )
                gone += self._removal.remove(entry.path, identity)
            except OSError as error:
                failed = self._root.failure(error, entry.path, "remove it")
                report(Problem(failed.code, entry.path, str(failed)))
            except FileError as error:
                report(Problem(error.code, entry.path, str(error)))
        return gone
