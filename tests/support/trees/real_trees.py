"""A real source tree, Python's own library, and what a few weeks of work could have made of it."""

from __future__ import annotations

import os
import random
import shutil
import sysconfig
from pathlib import Path

__all__ = ["copy_library", "next_version"]

FILES = 700
"""Enough for every kind of content, few enough to be copied in a second."""


def copy_library(place: Path) -> Path:
    """`place` with the first FILES files of the standard library that Python came with, links and all."""
    library = Path(sysconfig.get_path("stdlib"))
    left = FILES
    for directory, names, files in os.walk(library):
        names[:] = sorted(set(names) - {"site-packages", "dist-packages", "__pycache__"})
        here = place / Path(directory).relative_to(library)
        here.mkdir()
        for name in sorted(files)[:left]:
            if os.path.getsize(f"{directory}/{name}") < 4 << 20:
                shutil.copy2(f"{directory}/{name}", here / name, follow_symlinks=False)
                left -= 1
        shutil.copystat(directory, here)
    return place


def next_version(old: Path, new: Path, seed: int = 0) -> Path:
    """A copy of `old` with edits, additions, deletions, renames and changed modes, seeded."""
    rng = random.Random(seed)
    shutil.copytree(old, new, symlinks=True)
    files = sorted(path for path in new.rglob("*.py") if path.is_file() and not path.is_symlink())
    for path in rng.sample(files, len(files) // 8):
        _edit(path, rng)
    for path in rng.sample(files, 10):
        path.rename(path.with_name(f"renamed_{path.name}"))
    left = sorted(path for path in new.rglob("*.py") if path.is_file())
    for path in rng.sample(left, 10):
        path.unlink()
    for i in range(10):
        (new / f"added_{i}.txt").write_bytes(rng.randbytes(rng.randrange(20_000)))
    package = next(path for path in sorted(new.iterdir()) if (path / "__init__.py").exists())
    package.rename(new / "moved_package")
    (new / "added_link").symlink_to("moved_package/__init__.py")
    for path in rng.sample(sorted(new.rglob("*.py")), 5):
        path.chmod(0o755)
    return new


def _edit(path: Path, rng: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(lines) + 1)
        match rng.randrange(3):
            case 0:
                lines.insert(at, b"# a line was added here\n")
            case 1:
                del lines[at : at + 3]
            case 2:
                lines[at : at + 1] = [b"value = %d\n" % rng.randrange(1 << 30)]
    path.write_bytes(b"".join(lines))
