"""ObjectStore: lists and reads the objects of a store. fsspec and s3fs are imported here alone.

Credentials, region and endpoint come from where the tools of the store look: the environment and ~/.aws. They
are in no path, part or message.
"""

from __future__ import annotations

from rdc.errors import FileError, one_line, printable
from rdc.files.depth.depth import Depth
from rdc.files.objects.object_file import OBJECT_AHEAD_BYTES, ObjectFile
from rdc.files.objects.object_lister import ObjectLister
from rdc.files.objects.object_listing import version_of
from rdc.limits.sessions import DEPTH_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from typing import Any

    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.objects.object_listing import ListedObjects
    from rdc.files.objects.object_url import ObjectUrl

__all__ = ["ObjectStore", "failure"]

ATTEMPTS = 3
"""How often a call is made that has no answer within s3fs's 15 seconds."""

SILENT_CALLS = 3
"""Calls in a row without an answer after which the store counts as gone. Each has waited and was repeated."""

CONNECTIONS = 4 * DEPTH_LIMIT
"""Most connections at a time: more than threads that read."""

BODY_ATTEMPTS = 3
"""How often an object is asked for whose content breaks off."""


class ObjectStore:
    """One connection for all buckets. Threads may share it."""

    def __init__(self, rate: ReadRate | None = None) -> None:
        """`rate`: bounds how fast objects are read."""
        import logging

        import fsspec

        # What matters to a user comes as an exception.
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
        """Yields the object that the URL names, if there is one, and the directories at and below it,
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
        """Makes a call. After some that had no answer, others fail at once, so that a store that is gone
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
        """Returns `length` bytes of an object that has this size and version, as listed. Raises what the
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
        """Opens the object that is at `path`, a URL, now. Raises FileError."""
        try:
            key = path.decode().removeprefix("s3://")
            file = self._fs.open(key, "rb", block_size=OBJECT_AHEAD_BYTES, cache_type="readahead")
            return ObjectFile(file, path, self.rate)
        except Exception as error:
            raise failure(error, path, "open it") from error


def _session() -> Any:
    """A session of the store's tools whose answers are read in a third of the time: theirs guesses the
    form of each date, which takes longer than all else of a listing."""
    from aiobotocore.session import AioSession
    from fsspec.config import conf

    session = AioSession(profile=conf.get("s3", {}).get("profile"))
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_date)
    return session


def _date(text: str) -> datetime:
    """A date in the form of a listing, or of a header. Raises ValueError."""
    from datetime import datetime
    from email.utils import parsedate_to_datetime

    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return parsedate_to_datetime(text)


def _single(url: ObjectUrl, lister: ObjectLister) -> ListedObjects | None:
    """The object that a URL names. Of all names that begin with its own, that comes first."""
    if not url.name:
        return None
    above, _, name = url.key.rpartition("/")
    pages = lister.single(url.name[: len(url.name) - len(name)], name)
    return pages.single(name, f"s3://{above}/".encode())


_SILENT = "the store does not answer; check the endpoint and the network, and run again"


class _ChangedError(ValueError):
    """An object is not what was listed."""


async def _content(store: Any, asked: Mapping[str, Any], length: int, version: int) -> bytes:
    """The content of a range, and one byte more if there is more."""
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
    """Reads at most so many bytes, whatever was announced."""
    spans: list[bytes] = []
    while most:
        span: bytes = await body.read(most)
        if not span:
            break
        spans.append(span)
        most -= len(span)
    return b"".join(spans)


def failure(error: Exception, path: bytes, doing: str) -> FileError:
    """The error of an object or a directory, by name. What a store says is shortened."""
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
    """What the store says, in a word of its protocol; '' if it said nothing."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


_UNREACHED = ("ConnectTimeoutError", "EndpointConnectionError", "ConnectionClosedError", "ReadTimeoutError")
"""The store's library has its own errors for a store that does not answer."""
