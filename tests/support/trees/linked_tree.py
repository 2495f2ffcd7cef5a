"""A random tree for slices: names of one file in several directories, and files that are alike."""

from __future__ import annotations

import os
import random
from pathlib import Path

__all__ = ["linked_tree"]


def linked_tree(top: Path, seed: int) -> None:
    """Add the tree of `seed` to `top`: some 60 files of up to 200 kB in 20 directories."""
    rng = random.Random(seed)
    directories = [top]
    for number in range(rng.randrange(8, 40)):
        # Names that sort differently alone and within paths.
        directories.append(rng.choice(directories) / rng.choice(("a", "a d", "a-b", "b", f"d{number}")))
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    contents = [rng.randbytes(rng.randrange(1, 200_000)) for _ in range(5)]
    contents += [b"", bytes(70_000), b"abc" * 20_000]
    files: list[Path] = []
    for number in range(rng.randrange(30, 70)):
        path = rng.choice(directories) / f"{number}{rng.choice(('.txt', '.JPG', '', '.tar.gz'))}"
        if files and not rng.randrange(5):
            os.link(rng.choice(files), path)
            continue
        content = rng.choice(contents)
        if rng.randrange(2):
            at = rng.randrange(len(content) + 1)
            content = content[:at] + rng.randbytes(rng.randrange(3_000)) + content[at:]
        path.write_bytes(content)
        if not rng.randrange(8):
            with path.open("r+b") as file:
                file.truncate(len(content) + 500_000)
        files.append(path)
    (directories[-1] / "up").symlink_to("..")
    os.mkfifo(directories[0] / "fifo")
