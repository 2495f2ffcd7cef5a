"""The file systems of the files that one catalog has seen, by device number."""

from __future__ import annotations

from rdc.catalog.entry import FileState
from rdc.errors import FileError
from rdc.files.facts.filesystem_id import file_system_of
from rdc.model.entries import strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.small_columns import SmallFiles
    from rdc.chunking.params import ChunkParams
    from rdc.files.facts.filesystem_id import FileSystem
    from rdc.files.root.source_file import SourceFile

__all__ = ["KnownFileSystems"]


class KnownFileSystems:
    """Asks the kernel once per device number; later lookups are a dictionary's."""

    def __init__(self) -> None:
        self._by_device: dict[int, FileSystem] = {}

    def known(self, device: int) -> FileSystem | None:
        """The file system of a device that was looked up before."""
        return self._by_device.get(device)

    def state_of(self, source: SourceFile, params: ChunkParams) -> FileState | None:
        """The catalog's key for an open file. None if its file system's ctime proves nothing."""
        device = source.identity.device
        file_system = self._by_device.get(device)
        if file_system is None:
            try:
                file_system = file_system_of(source.fileno())
            except OSError:
                return None
            self._by_device[device] = file_system
        if file_system.change_times.proves_nothing:
            return None
        return FileState(file_system.id, source.identity, params.id)

    def of_listed(self, device: int, files: SmallFiles) -> FileSystem | None:
        """The file system of a device that `files` lists. An unknown one is found by opening its first file;
        None if that fails."""
        found = self._by_device.get(device)
        if found is not None:
            return found
        path = strings(files.paths)[files.devices.index(device)]
        try:
            with files.root.open_read(path) as source:
                if source.identity.device != device:
                    return None
                found = self._by_device[device] = file_system_of(source.fileno())
        except (OSError, FileError):
            return None
        return found
