"""The error for a request that names an entry without content."""

from __future__ import annotations

from rdc.errors import ProtocolError

__all__ = ["no_file"]


def no_file(row: int) -> ProtocolError:
    """Makes it. `row`: of the manifest."""
    return ProtocolError(f"the far side asked for entry {row}, which is no listed regular file")
