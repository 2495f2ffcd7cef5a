"""ObjectUrl: a bucket of an object store and what is below a name in it, as in s3://BUCKET/NAME."""

from __future__ import annotations

import re

from rdc.errors import UsageError, printable
from rdc.lean.records import dataclass

__all__ = ["ObjectUrl", "is_url", "parse_url"]

_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*)://")

_S3 = re.compile(rb"s3://([a-z0-9][a-z0-9._-]{1,254})(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    bucket: str
    name: str
    """Of an object, or of all objects whose names begin with it and a slash; '' for all of the bucket."""

    @property
    def key(self) -> str:
        """As fsspec names it."""
        return f"{self.bucket}/{self.name}" if self.name else self.bucket

    @property
    def prefix(self) -> str:
        """Of the names of all objects below it."""
        return f"{self.name}/" if self.name else ""


def is_url(path: bytes) -> bool:
    """Whether a path is a URL. A file of such a name is given as ./NAME."""
    return _SCHEME.match(path) is not None


def parse_url(path: bytes) -> ObjectUrl:
    """Raises UsageError for a URL of another kind, and if what reads it is not installed."""
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
