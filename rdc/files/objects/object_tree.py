"""ObjectTree: the objects below one name of a bucket, as Root is the tree of files below a directory."""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

from rdc.errors import FileError, printable
from rdc.files.depth.calls_at_once import calls_at_once
from rdc.files.depth.depth import Depths, RowsSeen
from rdc.files.objects.object_source import ObjectSource
from rdc.files.objects.object_store import failure
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.objects.object_store import ObjectStore

__all__ = ["ListedObject", "ObjectTree"]


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object that was listed."""

    path: bytes
    """As ObjectTree has it."""
    size: int
    """Bytes."""
    version: int
    """As version_of returns it."""


class ObjectTree:
    """A path is a dot, and behind it what the key has behind the name of the tree, slashes included. So a
    path has any key, also one with two slashes in a row. Threads may share an ObjectTree."""

    def __init__(
        self, store: ObjectStore, depths: Depths, bucket: str, name: str, stopped: Callable[[], bool]
    ) -> None:
        """`name`: what all keys begin with, and a slash; '' for all keys of the bucket. `depths`: how
        many calls are in flight; trees of one store share them. `stopped`: whether the caller wants to
        stop."""
        self._store = store
        self._bucket = bucket
        self._name = name
        self._depths = depths
        self._stopped = stopped
        self._shown = f"s3://{bucket}/{name}".encode().removesuffix(b"/")

    def shown(self, path: bytes) -> bytes:
        """The URL of a path."""
        return self._shown + path[1:]

    def open_object(self, path: bytes, size: int, version: int) -> ObjectSource:
        """Opens an object as it was listed. That asks the store for nothing; reading gives bytes of this
        version alone."""
        read = partial(self.read_range, ListedObject(path, size, version))
        return ObjectSource(path, self.shown(path), size, version, read)

    def read_range(self, listed: ListedObject, offset: int, length: int) -> bytes:
        """Returns exactly `length` bytes. Raises FileError."""
        path, size, version = listed.path, listed.size, listed.version
        key = (self._name + path.decode()[1:]).removeprefix("" if self._name else "/")
        try:
            return self._store.read(self._bucket, key, offset, length, size=size, version=version)
        except Exception as error:
            raise failure(error, self.shown(path), "read it") from error

    def read_small(self, objects: Sequence[ListedObject]) -> list[bytes | FileError]:
        """The content of each object, or the error that prevented it. Several are read at a time. Once the
        caller wants to stop, no more are read."""
        contents: list[bytes | FileError] = []
        depth = self._depths.opening
        while len(contents) < len(objects):
            chosen = objects[len(contents) : len(contents) + depth.rows]
            begun = perf_counter_ns()
            answers = calls_at_once(self._timed, chosen, self._depths)
            waited = sum([answer.waited for answer in answers])
            depth.saw(RowsSeen(len(chosen), len(chosen), waited, perf_counter_ns() - begun, 0, 0))
            contents += [answer.content for answer in answers]
        return contents

    def _timed(self, listed: ListedObject) -> _Answer:
        begun = perf_counter_ns()
        content: bytes | FileError
        try:
            if self._stopped():
                raise FileError(listed.path, f"{printable(self.shown(listed.path))}: not read before the end")
            content = self.read_range(listed, 0, listed.size)
        except FileError as error:
            content = error
        return _Answer(content, perf_counter_ns() - begun)

    def release(self) -> None:
        """As Root's. Connections end with the store."""


@dataclass(frozen=True, slots=True)
class _Answer:
    content: bytes | FileError
    waited: int
    """Nanoseconds."""
