"""ObjectStore: lists and opens the objects of a store. fsspec and s3fs are imported here alone.

Credentials, region and endpoint come from where the tools of the store look: the environment and ~/.aws. They
are in no path, part or message.
"""

from __future__ import annotations

from rdc.errors import FileError, one_line, printable
from rdc.files.objects.object_file import AHEAD_BYTES, ObjectFile
from rdc.limits.wire import SIZE_LIMIT
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.objects.object_url import ObjectUrl

__all__ = ["ListedObjects", "ObjectEntry", "ObjectStore"]


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    name: bytes
    """Behind the last slash."""
    size: int


@dataclass(frozen=True, slots=True)
class ListedObjects:
    """The objects of which one directory consists, were their names paths."""

    directory: bytes
    """As the user would type it, ending in a slash."""
    below: bytes
    """The same, relative to the URL that is walked: empty, or ending in a slash."""
    objects: list[ObjectEntry]
    """By name."""
    directories: list[bytes]
    """Names of directories in it."""
    single: bool = False
    """Whether it is of one object that a URL names."""


class ObjectStore:
    """One connection for all buckets."""

    def __init__(self, rate: ReadRate | None = None) -> None:
        """`rate`: bounds how fast objects are read."""
        import logging

        import fsspec

        # What matters to a user comes as an exception.
        for name in ("s3fs", "botocore", "aiobotocore", "fsspec", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._rate = rate
        self._fs: Any = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)

    def walk(
        self, url: ObjectUrl, enter: Callable[[bytes, bytes], bool]
    ) -> Iterator[ListedObjects | FileError]:
        """Yields directories, each before those in it, or the error of one that cannot be listed. If the URL
        names an object, it is alone in its directory.

        `enter` is called with a directory as the user would type it, and relative to the URL. It returns
        whether the directory is listed.
        """
        waiting = [b""]
        while waiting:
            below = waiting.pop()
            key = "/".join([url.key, below.decode().rstrip("/")]).rstrip("/")
            if not enter(f"s3://{key}/".encode(), below):
                continue
            try:
                found = _listed(self._fs.ls(key, detail=True), key, below)
            except Exception as error:  # noqa: BLE001 - a store may raise anything that is its own
                yield failure(error, f"s3://{key}".encode(), "list it")
                continue
            yield found
            waiting += [below + name + b"/" for name in reversed(found.directories)]

    def open(self, path: bytes) -> ObjectFile:
        """Opens the object that is at `path`, a URL, now. Raises FileError."""
        try:
            key = path.decode().removeprefix("s3://")
            file = self._fs.open(key, "rb", block_size=AHEAD_BYTES, cache_type="readahead")
            return ObjectFile(file, path, self._rate)
        except Exception as error:
            raise failure(error, path, "open it") from error


def _listed(entries: list[dict[str, Any]], key: str, below: bytes) -> ListedObjects:
    """Raises ValueError for sizes that no object has."""
    first = entries[0] if len(entries) == 1 and not below else {}
    if first.get("name") == key and first["type"] == "file":
        above, _, name = key.rpartition("/")
        one = ObjectEntry(name.encode(), _size(first))
        return ListedObjects(f"s3://{above}/".encode(), b"", [one], [], single=True)
    objects, directories = [], []
    for entry in entries:
        above, _, name = entry["name"].rstrip("/").rpartition("/")
        # A store may hold an object with the name of the directory, and names with empty parts.
        if above != key or not name or entry["name"].rstrip("/") == key:
            continue
        if entry["type"] == "directory":
            directories.append(name.encode())
        elif not entry["name"].endswith("/"):
            objects.append(ObjectEntry(name.encode(), _size(entry)))
    objects.sort(key=lambda entry: entry.name)
    return ListedObjects(f"s3://{key}/".encode(), below, objects, sorted(directories))


def _size(entry: dict[str, Any]) -> int:
    size = entry["size"]
    if not isinstance(size, int) or not 0 <= size <= SIZE_LIMIT:
        raise ValueError(f"expected the size of an object, found {str(size)[:40]}")
    return size


def failure(error: Exception, path: bytes, doing: str) -> FileError:
    """The error of an object or a directory, by name. What a store says is shortened."""
    if isinstance(error, FileNotFoundError):
        reason = "there is no such bucket or object"
    elif isinstance(error, PermissionError):
        reason = "the store denies access; check the credentials and what they may read"
    elif type(error).__name__ == "NoCredentialsError":
        reason = (
            "no credentials were found; set AWS_PROFILE, AWS_ACCESS_KEY_ID or what the store's tools read"
        )
    else:
        reason = one_line(str(error))[:200] or type(error).__name__
    return FileError(path, f"{printable(path)}: cannot {doing}: {reason}")
