"""A destination and the source that replaces and deletes in it."""

from __future__ import annotations

from tests.support.trees.trees import Directory, File, Link, tree

HELD = tree(
    {
        "f": File(b"the old content", 0o600, 1),
        "large": File(bytes(range(256)) * 2000, 0o640, 1),
        "l": Link(b"there", 1),
        "gone/deep/g": File(b"deleted", 0o640, 1),
        "gone-link": Link(b"f"),
        "same": b"the same",
        "mode": File(b"its mode alone", 0o600),
        "was": File(b"a directory now", 0o644, 1),
        "d": Directory(0o750),
        "d/f": File(b"old, too", 0o644, 1),
    }
)
WANTED = tree(
    {
        "f": b"the new content",
        "large": bytes(range(256)) * 1000 + b"edit" + bytes(range(256)) * 1000,
        "l": Link(b"elsewhere"),
        "same": b"the same",
        "mode": File(b"its mode alone", 0o644),
        "was/in": b"it",
        "d/f": b"new, too",
        "new": b"nothing was here",
    }
)
