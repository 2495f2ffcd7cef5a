"""Buckets of objects: URLs, requests to their store, listings page by page, and objects as a tree."""

from __future__ import annotations

import re
from array import array
from functools import partial
from itertools import pairwise
from time import perf_counter_ns

from blake3 import blake3

from rdc.errors import ExitCode, FileError, UsageError, one_line, printable
from rdc.files.depth import DEPTH_MOST, Depth, Depths, ReadRate, RowsSeen, calls_at_once
from rdc.files.objects.object_file import OBJECT_AHEAD_BYTES, ObjectFile, ObjectSource
from rdc.lean.records import Record
from rdc.limits import (
    AHEAD_BYTES,
    DEPTH_LIMIT,
    DIRECTORY_BYTES,
    ENTRY_BYTES,
    KEY_BYTES,
    LISTING_EMPTY_PAGES,
    SIZE_LIMIT,
)
from rdc.model.entries import strings
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from rdc.lean.threads import Task, Threads


# ObjectUrl: a bucket of an object store and what is below a name in it, as in s3://BUCKET/NAME.

_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://")

_S3 = re.compile(rb"s3://([a-z0-9][a-z0-9._-]{1,254})(?:/(.*))?", re.DOTALL)


class ObjectUrl(Record):
    bucket: str
    name: str
    """The name of an object, or of all objects below it and a slash; '' for the whole bucket."""

    @property
    def key(self) -> str:
        """The name in fsspec."""
        return f"{self.bucket}/{self.name}" if self.name else self.bucket

    @property
    def prefix(self) -> str:
        """The prefix of the names of all objects below it."""
        return f"{self.name}/" if self.name else ""


def is_url(path: bytes) -> bool:
    """Return whether a path is a URL. A file of such a name is given as ./NAME."""
    return _SCHEME.match(path) is not None


def parse_url(path: bytes) -> ObjectUrl:
    """Parse the URL of an object store. Raises UsageError for a URL of another kind, and if what reads it is
    not installed."""
    found = _S3.fullmatch(path)
    if found is None:
        scheme = _SCHEME.match(path)
        # A URL may hold a password, so it is not repeated.
        shown = printable(scheme[1]) if scheme is not None else ""
        raise UsageError(
            f"{shown}://: expected s3://BUCKET/NAME; credentials come from the environment and never with a"
            " path, and a local path begins with ./"
        )
    from importlib.util import find_spec

    if find_spec("s3fs") is None:
        raise UsageError(f"{printable(path)}: needs s3fs: python3 -m pip install 'rdc-sync[s3]'")
    try:
        name = (found[2] or b"").strip(b"/").decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(path)}: names of objects are UTF-8") from error
    return ObjectUrl(found[1].decode(), name)


# ListedObjects: the objects of one directory, as the pages of a store's listing give them.


class ListedObjects(Record):
    """The objects of which one directory consists, were their names paths."""

    directory: bytes
    """The directory as the user would type it, ending in a slash."""
    below: bytes
    """The path relative to the URL that is walked: empty, or ending in a slash."""
    names: bytes
    """The rest of each key behind the directory, in order, each followed by NUL. A rest is empty if the key
    of an object with content ends in a slash."""
    sizes: array[int]
    versions: array[int]
    """Typecode 'Q', one per name: bytes, and what version_of returns."""
    directories: list[bytes]
    """Names of directories in it, in order. One is empty if a key has two slashes in a row."""
    nameless: int = 0
    """Objects that are left out, since their names contain NUL."""
    single: bool = False
    """True if the URL names one object, which this listing holds alone."""

    def nameless_problem(self) -> Problem:
        """Return what is to be said of the objects that are left out."""
        text = f"{printable(self.directory)}: {self.nameless} names with NUL bytes; rename these objects"
        return Problem(ExitCode.PARTIAL, self.directory, text)


def version_of(answer: Mapping[str, Any]) -> int:
    """64 bits that differ if the store says that the content does: its ETag, or the time where it gives
    none."""
    version = answer.get("ETag")
    if not version:
        changed = answer.get("LastModified")
        version = changed.replace(microsecond=0).isoformat() if changed is not None else ""
    return int.from_bytes(blake3(str(version).encode()).digest(8), "little")


class PageReader:
    """Gathers the pages of one directory in columns, some tens of bytes an object.

    A store is not trusted: what it lists is checked, and what a directory may take is bounded.
    """

    def __init__(self, prefix: str) -> None:
        """`prefix`: that of all keys, empty or ending in a slash."""
        self._prefix = prefix
        self._names: list[bytes] = []
        self._sizes, self._versions = array("Q"), array("Q")
        self._directories: set[bytes] = set()
        self._nameless = 0
        self.bytes = 0
        """The memory that the entries take, as DIRECTORY_BYTES counts it."""
        self.is_empty = True
        """True if the store lists nothing, not even an object that stands for the directory."""

    def add(self, page: Mapping[str, Any]) -> None:
        """Take one answer of list_objects_v2. Raises ValueError for what no store lists."""
        for entry in page.get("Contents") or ():
            self.is_empty = False
            name, size = self._name(entry["Key"]), entry["Size"]
            if not isinstance(size, int) or not 0 <= size <= SIZE_LIMIT:
                raise ValueError(f"expected the size of an object, found {str(size)[:40]}")
            if b"/" in name:
                raise ValueError("expected the objects of one directory, found others")
            if b"\0" in name:
                self._nameless += 1
            elif name or size:
                # An empty object with the name of the directory stands for it.
                self._names.append(name)
                self._sizes.append(size)
                self._versions.append(version_of(entry))
        for entry in page.get("CommonPrefixes") or ():
            self.is_empty = False
            name = self._name(entry["Prefix"])
            if not name.endswith(b"/") or b"/" in name[:-1]:
                raise ValueError("expected the directories of one directory, found others")
            if b"\0" in name:
                self._nameless += 1
            else:
                self._directories.add(name[:-1])

    def _name(self, key: str) -> bytes:
        name = key.removeprefix(self._prefix).encode()
        if not key.startswith(self._prefix) or len(name) > KEY_BYTES:
            raise ValueError("expected names below the one that was asked for, found others")
        self.bytes += ENTRY_BYTES + len(name)
        if self.bytes > DIRECTORY_BYTES:
            raise ValueError(f"expected at most {DIRECTORY_BYTES >> 20} MiB of names, found more")
        return name

    def listed(self, directory: bytes, below: bytes) -> ListedObjects:
        """Return the entries of all pages, by name."""
        names, sizes, versions = self._names, self._sizes, self._versions
        if any(one >= next_ for one, next_ in pairwise(names)):
            # Some stores list in another order. If a name comes twice, the first one counts.
            order = sorted(range(len(names)), key=names.__getitem__)
            order = [row for at, row in enumerate(order) if not at or names[row] != names[order[at - 1]]]
            names = [names[row] for row in order]
            sizes = array("Q", [sizes[row] for row in order])
            versions = array("Q", [versions[row] for row in order])
        column = b"".join([name + b"\0" for name in names])
        return ListedObjects(
            directory, below, column, sizes, versions, sorted(self._directories), nameless=self._nameless
        )

    def single(self, name: str, directory: bytes) -> ListedObjects | None:
        """Return the object of this very name, if the pages have it."""
        listed = self.listed(directory, b"")
        names = strings(listed.names)
        if name.encode() not in names:
            return None
        row = names.index(name.encode())
        one = slice(row, row + 1)
        return ListedObjects(
            directory, b"", names[row] + b"\0", listed.sizes[one], listed.versions[one], [], single=True
        )


# ObjectLister: lists the directories of a walk over a bucket, and begins the next ones while the walk waits.
#
# A walk knows which directories come next: those of its stack. Begun ahead, they wait for the store together.
# The walk still gets one after the other, in its own order, each with its own error.


class _Listing:
    """One directory whose listing has begun."""

    def __init__(self, pages: PageReader, asked: dict[str, Any]) -> None:
        self.pages = pages
        self.asked = asked
        """The parameters of the request for the next page."""
        self.more = True
        self.waited = 0
        """Nanoseconds of the first page."""


class ObjectLister:
    """Lists one bucket for one walk. It raises the errors of the store's library, and ValueError for an
    answer that no store gives."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        bucket: str,
        depth: Depth,
        stopped: Callable[[], bool],
    ) -> None:
        """`ask`: returns one page. `depth`: how many first pages are under way. `stopped`: asked before
        each page; True ends a listing where it is."""
        self._ask = ask
        self._bucket = bucket
        self._depth = depth
        self._stopped = stopped
        self._tasks: dict[str, Task[_Listing]] = {}
        """The listings that were begun ahead and that nobody took yet."""
        self._threads: Threads | None = None

    def single(self, prefix: str, name: str) -> PageReader:
        """Return the listing of one entry: the first whose key begins with `prefix` and `name`."""
        listing = self._new(prefix)
        listing.asked.update(Prefix=prefix + name, MaxKeys=1)
        if not self._stopped():
            listing.pages.add(self._ask(listing.asked))
        return listing.pages

    def take(self, prefix: str, following: Sequence[str]) -> PageReader:
        """List one directory. `following`: those that come after it, the next one last."""
        begun = perf_counter_ns()
        if self._depth.now > 1:
            self._submit(prefix, following)
        task = self._tasks.pop(prefix, None)
        listing = self._begin(prefix) if task is None else task.result()
        self._depth.saw(RowsSeen(1, 1, listing.waited, perf_counter_ns() - begun, 0, 0))
        empty = 0
        while listing.more and not self._stopped():
            before = listing.pages.bytes
            self._add_page(listing)
            empty = 0 if listing.pages.bytes > before else empty + 1
            if empty > LISTING_EMPTY_PAGES:
                raise ValueError("expected the listing to end, found no end")
        return listing.pages

    def close(self) -> None:
        """Wait for what is under way."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        if self._threads is not None:
            self._threads.close()

    def _new(self, prefix: str) -> _Listing:
        return _Listing(PageReader(prefix), {"Bucket": self._bucket, "Prefix": prefix, "Delimiter": "/"})

    def _begin(self, prefix: str) -> _Listing:
        """Return the first page of a directory. Runs in any thread."""
        listing, begun = self._new(prefix), perf_counter_ns()
        if not self._stopped():
            self._add_page(listing)
        listing.waited = perf_counter_ns() - begun
        return listing

    def _add_page(self, listing: _Listing) -> None:
        page = self._ask(listing.asked)
        listing.pages.add(page)
        token = page.get("NextContinuationToken")
        listing.more = bool(page.get("IsTruncated") and token)
        if listing.more and token == listing.asked.get("ContinuationToken"):
            raise ValueError("expected the listing to end, found no end")
        listing.asked["ContinuationToken"] = token

    def _submit(self, prefix: str, following: Sequence[str]) -> None:
        """Begin `prefix` and the next ones, as many as the depth and the bound of memory let be."""
        ended = [task for task in self._tasks.values() if task.done()]
        running = len(self._tasks) - len(ended)
        if sum(map(_bytes_of, ended)) > AHEAD_BYTES // 2:
            return
        for one in (prefix, *following[: -1 - 4 * self._depth.now : -1]):
            if running >= self._depth.now:
                return
            if one not in self._tasks:
                if self._threads is None:
                    from rdc.lean.threads import Threads

                    self._threads = Threads(max(self._depth.now, DEPTH_MOST), "rdc list")
                try:
                    self._tasks[one] = self._threads.submit(self._begin, one)
                except RuntimeError:
                    # The system refuses even one thread.
                    self._depth.saw(RowsSeen(0, 0, 0, 0, 0, 1))
                    return
                running += 1


def _bytes_of(task: Task[_Listing]) -> int:
    """Return the bytes of memory that an ended listing takes."""
    try:
        return task.result().pages.bytes
    except Exception:  # noqa: BLE001 - it is raised when its turn comes
        return 0


# ObjectStore: lists and reads the objects of a store. fsspec and s3fs are imported here alone.
#
# Credentials, region and endpoint come from where the tools of the store look: the environment and ~/.aws.
# They are in no path, part or message.

ATTEMPTS = 3
"""Attempts of a call that has no answer within s3fs's 15 seconds."""

SILENT_CALLS = 3
"""Calls in a row without an answer after which the store counts as gone. Each has waited and was repeated."""

CONNECTIONS = 4 * DEPTH_LIMIT
"""Most connections at a time: more than threads that read."""

BODY_ATTEMPTS = 3
"""Attempts to read an object whose content breaks off."""


class ObjectStore:
    """One connection for all buckets. Threads may share it."""

    def __init__(self, rate: ReadRate | None = None) -> None:
        """`rate`: bounds how fast objects are read."""
        import logging

        import fsspec

        # An exception tells all that matters to a user.
        for name in ("s3fs", "botocore", "aiobotocore", "fsspec", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.rate = rate
        self._silent = 0
        """Calls in a row without an answer."""
        self._fs: Any = fsspec.filesystem(
            "s3",
            skip_instance_cache=True,
            use_listings_cache=False,
            session=_session(),
            # s3fs repeats what fails. Repetitions of repetitions would take minutes.
            config_kwargs={"max_pool_connections": CONNECTIONS, "retries": {"total_max_attempts": 1}},
        )
        self._fs.retries = ATTEMPTS

    def walk(
        self,
        url: ObjectUrl,
        enter: Callable[[bytes, bytes], bool],
        stopped: Callable[[], bool] = lambda: False,
        *,
        left_out: Callable[[bytes], bool] = lambda _: False,
        depth: Depth | None = None,
    ) -> Iterator[ListedObjects | FileError]:
        """Yield the object that the URL names, if there is one, and the directories at and below it,
        each before those in it. Yields the error of one that cannot be listed.

        `enter` is called with a directory as the user would type it, and relative to the URL. It returns
        whether the directory is taken. `left_out`: whether a directory, relative to the URL and without a
        slash at its end, need not even be listed. `stopped` is asked before each page; True ends the
        walk. `depth`: how many directories are listed at a time; one without it.
        """
        lister = ObjectLister(self._list_page, url.bucket, Depth(1) if depth is None else depth, stopped)
        try:
            yield from self._walked(url, lister, enter, stopped, left_out)
        finally:
            lister.close()

    def _walked(
        self,
        url: ObjectUrl,
        lister: ObjectLister,
        enter: Callable[[bytes, bytes], bool],
        stopped: Callable[[], bool],
        left_out: Callable[[bytes], bool],
    ) -> Iterator[ListedObjects | FileError]:
        try:
            single = _single(url, lister)
        except Exception as error:  # noqa: BLE001 - a store may raise anything that is its own
            yield failure(error, f"s3://{url.key}".encode(), "list it")
            return
        if single is not None:
            yield single
        top = len(url.prefix)
        waiting = [url.prefix]
        while waiting and not stopped():
            prefix = waiting.pop()
            below = prefix[top:].encode()
            directory = f"s3://{url.key}/".encode() + below
            if not enter(directory, below):
                continue
            try:
                pages = lister.take(prefix, waiting)
                if not below and url.name and pages.is_empty:
                    if single is not None:
                        return
                    raise FileNotFoundError
                found = pages.listed(directory, below)
            except Exception as error:  # noqa: BLE001 - a store may raise anything that is its own
                yield failure(error, directory.removesuffix(b"/"), "list it")
                continue
            yield found
            for name in reversed(found.directories):
                if not left_out(below + name):
                    waiting.append(f"{prefix}{name.decode()}/")

    def _list_page(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._ask("list_objects_v2", asked)

    def _ask(self, method: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._answered(
            lambda: self._fs.call_s3(method, **asked, **self._fs.req_kw)
        )
        return answer

    def _answered(self, call: Callable[[], Any]) -> Any:
        """Make a call. After some that had no answer, others fail at once, so that a store that is gone
        takes no hour for a thousand objects."""
        if self._silent >= SILENT_CALLS:
            raise TimeoutError(_SILENT)
        try:
            answer = call()
        except Exception as error:
            refused = isinstance(error, (FileNotFoundError, PermissionError, ValueError))
            self._silent = 0 if refused or _code(error) else self._silent + 1
            raise
        self._silent = 0
        return answer

    def read(self, bucket: str, key: str, offset: int, length: int, *, size: int, version: int) -> bytes:
        """Return `length` bytes of an object that has this size and version, as listed. Raises what the
        store's library raises, and ValueError if it is another version or the content has another length.
        Use `failure`."""
        if not length:
            return b""
        if self.rate is not None:
            self.rate.take(length)
        from fsspec.asyn import sync

        asked: dict[str, Any] = {"Bucket": bucket, "Key": key, **self._fs.req_kw}
        if (offset, length) != (0, size):
            asked["Range"] = f"bytes={offset}-{offset + length - 1}"
        content: bytes = self._answered(
            lambda: sync(self._fs.loop, _content, self._fs, asked, length, version)
        )
        if len(content) != length:
            found = "more" if len(content) > length else f"{len(content)}"
            raise _ChangedError(f"expected {length} bytes, found {found}")
        return content

    def open(self, path: bytes) -> ObjectFile:
        """Open the object that is at `path`, a URL, now. Raises FileError."""
        try:
            key = path.decode().removeprefix("s3://")
            file = self._fs.open(key, "rb", block_size=OBJECT_AHEAD_BYTES, cache_type="readahead")
            return ObjectFile(file, path, self.rate)
        except Exception as error:
            raise failure(error, path, "open it") from error


def _session() -> Any:
    """Return a session of the store's tools whose answers are read in a third of the time: theirs guesses the
    form of each date, which takes longer than all else of a listing."""
    from aiobotocore.session import AioSession
    from fsspec.config import conf

    session = AioSession(profile=conf.get("s3", {}).get("profile"))
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_date)
    return session


def _date(text: str) -> datetime:
    """Return a date in the form of a listing, or of a header. Raises ValueError."""
    from datetime import datetime
    from email.utils import parsedate_to_datetime

    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)


def _single(url: ObjectUrl, lister: ObjectLister) -> ListedObjects | None:
    """Return the object that a URL names. A listing has it first among the names that begin with its own."""
    if not url.name:
        return None
    above, _, name = url.key.rpartition("/")
    pages = lister.single(url.name[: len(url.name) - len(name)], name)
    return pages.single(name, f"s3://{above}/".encode())


_SILENT = "the store does not answer; check the endpoint and the network, and run again"


class _ChangedError(ValueError):
    """An object is not what was listed."""


async def _content(store: Any, asked: Mapping[str, Any], length: int, version: int) -> bytes:
    """Return the content of a range, and one byte more if there is more."""
    attempt = 1
    while True:
        answer = await store._call_s3("get_object", **asked)
        body = answer["Body"]
        try:
            if version_of(answer) != version:
                raise _ChangedError("expected the version that was listed, found another one")
            return await _bounded(body, length + 1)
        except OSError:
            if attempt == BODY_ATTEMPTS:
                raise
            attempt += 1
        finally:
            body.close()


async def _bounded(body: Any, most: int) -> bytes:
    """Read at most this many bytes, whatever was announced."""
    spans: list[bytes] = []
    while most:
        span: bytes = await body.read(most)
        if not span:
            break
        spans.append(span)
        most -= len(span)
    return b"".join(spans)


def failure(error: Exception, path: bytes, doing: str) -> FileError:
    """Return the error of an object or a directory, by name. What a store says is shortened."""
    name = type(error).__name__
    if isinstance(error, FileNotFoundError):
        reason = "there is no such bucket or object"
    elif isinstance(error, _ChangedError):
        reason = f"{error}; run again once it is left alone"
    elif _code(error) == "InvalidRange":
        reason = "expected the size that was listed, found another one; run again once it is left alone"
    elif _code(error) == "InvalidObjectState":
        reason = "it is archived; restore it, and run again"
    elif isinstance(error, PermissionError):
        reason = "the store denies access; check the credentials and what they may read"
    elif name == "NoCredentialsError":
        reason = (
            "no credentials were found; set AWS_PROFILE, AWS_ACCESS_KEY_ID or what the store's tools read"
        )
    elif isinstance(error, TimeoutError) or name in _UNREACHED:
        reason = _SILENT
    else:
        reason = one_line(str(error))[:200] or name
    return FileError(path, f"{printable(path)}: cannot {doing}: {reason}")


def _code(error: Exception) -> str:
    """Return what the store says, in a word of its protocol; '' if it said nothing."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


_UNREACHED = ("ConnectTimeoutError", "EndpointConnectionError", "ConnectionClosedError", "ReadTimeoutError")
"""The store's library has its own errors for a store that does not answer."""


# ObjectTree: the objects below one name of a bucket, as Root is the tree of files below a directory.


class ListedObject(Record):
    """An object that was listed."""

    path: bytes
    """The path, as in ObjectTree."""
    size: int
    """Bytes."""
    version: int
    """The version, from version_of."""


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
        """Return the URL of a path."""
        return self._shown + path[1:]

    def open_object(self, path: bytes, size: int, version: int) -> ObjectSource:
        """Open an object as it was listed. That asks the store for nothing; reading gives bytes of this
        version alone."""
        read = partial(self.read_range, ListedObject(path, size, version))
        return ObjectSource(path, self.shown(path), size, version, read)

    def read_range(self, listed: ListedObject, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes. Raises FileError."""
        path, size, version = listed.path, listed.size, listed.version
        key = (self._name + path.decode()[1:]).removeprefix("" if self._name else "/")
        try:
            return self._store.read(self._bucket, key, offset, length, size=size, version=version)
        except Exception as error:
            raise failure(error, self.shown(path), "read it") from error

    def read_small(self, objects: Sequence[ListedObject]) -> list[bytes | FileError]:
        """Return the content of each object, or the error that prevented it. Several are read at a time. Once
        the caller wants to stop, no more are read."""
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
        """Release the tree, as Root does. Connections end with the store."""


class _Answer(Record):
    content: bytes | FileError
    waited: int
    """Nanoseconds."""
