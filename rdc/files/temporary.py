"""Names of temporary files: recognisable, unguessable, the same length whatever they will become."""

from __future__ import annotations

import os
import re

__all__ = ["TEMPORARY_PATTERN", "TEMPORARY_RANGE", "is_temporary", "temporary_name"]

TEMPORARY_PATTERN = rb"\.rdc-[0-9a-f]{16}\.tmp"
"""A regular expression for the whole name: hidden, ours, 64 random bits so that two never meet."""

_PREFIX = b".rdc-"

TEMPORARY_RANGE = (_PREFIX, _PREFIX[:-1] + b".")
"""Every temporary's name sorts at or after the first, and before the second ('.' follows '-')."""

_is_temporary = re.compile(TEMPORARY_PATTERN).fullmatch


def is_temporary(name: bytes) -> bool:
    """Whether `name` (one component) is a name that `temporary_name` gives."""
    # Most names do not begin with a dot: the first test spares a call of the regular expression.
    return name.startswith(_PREFIX) and _is_temporary(name) is not None


def temporary_name() -> bytes:
    return _PREFIX + os.urandom(8).hex().encode() + b".tmp"
