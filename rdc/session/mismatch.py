"""The error of content that is not what was promised: whoever meets it tries another way to have it."""

from __future__ import annotations

from rdc.errors import FileError

__all__ = ["MismatchError"]


class MismatchError(FileError):
    """Bytes are not what their digest promised: a short reference collided, or base or source changed."""
