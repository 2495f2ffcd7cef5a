"""Hard links as tests make them and find them."""

from __future__ import annotations

import os
from pathlib import Path


def link(top: Path, *names: str) -> None:
    """Make all of them names of the first; their directories keep their times."""
    for name in names[1:]:
        place = (top / name).parent
        times = place.stat()
        (top / name).unlink(missing_ok=True)
        os.link(top / names[0], top / name)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


def groups(top: Path) -> set[frozenset[str]]:
    """The names of each file that has several here."""
    found: dict[tuple[int, int], set[str]] = {}
    for place, _, names in os.walk(top):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                known = path.stat()
                found.setdefault((known.st_dev, known.st_ino), set()).add(str(path.relative_to(top)))
    return {frozenset(names) for names in found.values() if len(names) > 1}


def group(*names: str) -> frozenset[str]:
    return frozenset(names)
