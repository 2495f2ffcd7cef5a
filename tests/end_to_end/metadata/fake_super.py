"""rsync --fake-super, and the attributes that it and rdc wrote."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = os.geteuid() == 0
OLD = 1_500_000_000_123_456_789
"""Nanoseconds: another second than that of the test, since rsync sets no time within the same one."""


def seen(top: Path) -> dict[str, object]:
    """Everything of a tree, as it is."""
    found: dict[str, object] = {}
    for path in sorted([top, *top.rglob("*")]):
        now = path.lstat()
        link = os.readlink(path) if path.is_symlink() else None
        content = path.read_bytes() if path.is_file() and link is None else None
        names = os.listxattr(path, follow_symlinks=False)
        kept = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
        facts = now.st_mode, now.st_uid, now.st_gid, now.st_rdev, now.st_mtime_ns, link, content, kept
        found[str(path.relative_to(top))] = facts
    return found


def rsync(*words: str | Path) -> str:
    return subprocess.run(["rsync", "-a", *words], check=True, capture_output=True, text=True).stdout
