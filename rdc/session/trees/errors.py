"""The error for content that does not match its digest. The caller then tries another way to get it."""

from __future__ import annotations

from rdc.errors import FileError

__all__ = ["MismatchError"]


class MismatchError(FileError):
    """Bytes do not match their digest: a short digest collided, or the base or the source changed."""
