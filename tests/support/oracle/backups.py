"""Finds the backups of a case."""

from __future__ import annotations

__all__ = ["BACKUP_DIRECTORIES", "originals"]

BACKUP_DIRECTORIES = (b"o/l/d/", b"old/")
BACKUP_SUFFIXES = (b"~", b".old", b".1")


def originals(path: bytes) -> frozenset[bytes]:
    """The paths that may have been replaced if `path` is a backup; none for another path."""
    inside = next((path.removeprefix(top) for top in BACKUP_DIRECTORIES if path.startswith(top)), path)
    return frozenset({inside, *(inside.removesuffix(each) for each in BACKUP_SUFFIXES)} - {path})
