"""Helpers that write, commit and read files below a Root."""

from __future__ import annotations

import os

from rdc.files.base.metadata import Anything
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.model.entries import Identity, Metadata

PLAIN = Metadata(0o640, 1_600_000_000_123_456_789, os.geteuid(), os.getegid())


def write(root: Root, path: bytes, data: bytes) -> Replacement:
    replacement = Replacement(root, path)
    replacement.write(data)
    return replacement


def read(root: Root, path: bytes) -> bytes:
    with root.open_read(path) as source:
        return b"".join(source.spans())


def commit(root: Root, path: bytes, data: bytes, expected: Identity | Anything | None) -> None:
    with CommitGroup(root, on_commit=lambda _: None) as group:
        group.add(write(root, path, data), path, PLAIN, False, expected)


def temporaries(root: Root, path: bytes = b"") -> list[bytes]:
    return list(root.listed(path).reserved)
