"""Names of displaced files."""

from __future__ import annotations

import dataclasses

from rdc.files.base.paths import is_temporary
from rdc.files.names.name_change import displaced_name, is_displaced
from rdc.model.entries import Metadata


def test_names_of_displaced_files() -> None:
    metadata = Metadata(0o644, -5, 1, 2)
    name = displaced_name(b"report.txt", 10, metadata)
    assert is_displaced(name)
    assert name != displaced_name(b"other", 10, metadata)
    assert name != displaced_name(b"report.txt", 11, metadata)
    for change in ({"mode": 0o640}, {"mtime_ns": -4}, {"uid": 2}, {"gid": 1}):
        assert name != displaced_name(b"report.txt", 10, dataclasses.replace(metadata, **change))
    # A sweep of temporaries, which may be removed at any time, must never take them.
    assert not is_temporary(name)
    for other in (b".rdc-0123456789abcdef.tmp", b".rdc-0123.old", b"x" + name, name + b"x", b"old"):
        assert not is_displaced(other)
