"""Limits of extended attributes."""

from __future__ import annotations

ATTRIBUTE_NAME_BYTES = 255
"""Bytes of an extended attribute's name: Linux's own limit (XATTR_NAME_MAX)."""

ATTRIBUTE_VALUE_BYTES = 65_536
"""Bytes of an extended attribute's value: Linux's own limit (XATTR_SIZE_MAX)."""

ATTRIBUTE_SET_BYTES = 256 << 10
"""Bytes of all packed attributes of one entry: four values of the longest kind or thousands of usual ones,
more than ext4 has room for, and a quarter of a frame. A larger set is reported and skipped."""

ATTRIBUTE_MESSAGE_BYTES = 512 << 10
"""Bytes of the distinct attribute sets in one message: two of the largest kind, half a frame."""

ATTRIBUTES_HELD_BYTES = 64 << 20
"""Bytes of distinct attribute sets that a destination keeps until it sets them, after all contents are in
place. Most trees repeat a few sets; a million files, each with a set of its own of 64 bytes, fit."""
