"""Churn: random changes of a tree while a watch follows it."""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from pathlib import Path


class Churn:
    """Seeded changes of a tree: what people and build tools do, some of it at once."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root = root
        self._rng = random.Random(seed)
        self._made = 0

    def step(self) -> None:
        acts = [self._create, self._create, self._edit, self._edit, self._save, self._rename, self._delete]
        acts += [self._make_path, self._touch, self._swap, self._link, self._replace]
        act = self._rng.choice(acts)
        # What another step took away, or a name that is taken.
        with contextlib.suppress(OSError, IndexError, ValueError, shutil.Error):
            act()

    def run(self, steps: int, pause: float = 0.004) -> None:
        for _ in range(steps):
            self.step()
            if self._rng.random() < 0.3:
                time.sleep(self._rng.uniform(0, pause))

    def _all(self) -> list[Path]:
        return sorted(self._root.rglob("*"))

    def _files(self) -> list[Path]:
        return [path for path in self._all() if path.is_file() and not path.is_symlink()]

    def _directories(self) -> list[Path]:
        return [self._root, *(path for path in self._all() if path.is_dir() and not path.is_symlink())]

    def _new(self) -> Path:
        self._made += 1
        return self._rng.choice(self._directories()) / f"n{self._made}"

    def _bytes(self) -> bytes:
        # Of different lengths: two files of one size that are made in one tick of the clock and swapped look
        # the same to a comparison by size and mtime, here as in a sync.
        return self._rng.randbytes(self._rng.choice([0, 10, 3_000, 40_000]) + self._rng.randrange(1_000))

    def _create(self) -> None:
        self._new().write_bytes(self._bytes())

    def _edit(self) -> None:
        with self._rng.choice(self._files()).open("r+b") as file:
            file.seek(self._rng.randrange(5_000))
            file.write(self._bytes()[:100] or b"x")

    def _save(self) -> None:
        target = self._rng.choice(self._files())
        beside = target.with_name("." + target.name + ".swp")
        beside.write_bytes(self._bytes())
        beside.replace(target)

    def _rename(self) -> None:
        self._rng.choice(self._all()).rename(self._new())

    def _delete(self) -> None:
        path = self._rng.choice(self._all())
        if path.is_dir() and not path.is_symlink():
            if len(self._all()) > 30:
                shutil.rmtree(path)
        else:
            path.unlink()

    def _make_path(self) -> None:
        top = self._new()
        (top / "a" / "b").mkdir(parents=True)
        (top / "a" / "b" / "deep").write_bytes(self._bytes())
        if self._rng.random() < 0.5:
            (top / "a").rename(top / "c")

    def _touch(self) -> None:
        path = self._rng.choice(self._all())
        if not path.is_symlink():
            path.chmod(self._rng.choice([0o755, 0o700, 0o750]))

    def _swap(self) -> None:
        one, other = self._rng.sample(self._files(), 2)
        aside = one.with_name("aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def _link(self) -> None:
        self._new().symlink_to("anywhere")

    def _replace(self) -> None:
        path = self._rng.choice(self._files())
        path.unlink()
        path.mkdir()
        (path / "inside").write_bytes(self._bytes())
