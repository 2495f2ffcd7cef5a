"""Measures the size of stores of successive versions of trees, beside restic and borg.

Question:  how large is a store after several versions of a tree, what did the last one add, and for how much
           CPU?
Metrics:   stored: bytes of all files of the store, in MB of 10^6; added: those of the last put; cpu: user and
           system seconds of the first put, of the last one, and of restoring the last version into an empty
           directory; puts: those of all puts. The restored tree is compared with the version; a tool that
           differs is named. Each tool has caches of its own. A put begins SETTLED seconds after the update:
           of a file that changed right before it was read, rdc remembers nothing.
Beside:    restic, and `borg create -C zstd,3` without encryption. restic encrypts always, and a command of it
           has some .3 s of key derivation.
Corpora:   --versions NAME TREE TREE...: they are put one after another from one directory, which rsync -a
           --delete updates in place. --moved NAME OLD NEW: each file of NEW has another name and place.
Commands:  .venv/bin/python -m bench.store --versions django django/4.2.1 django/4.2.2 django/4.2.16
           .venv/bin/python -m bench.store --moved sqlite sqlite/old sqlite/new
           .venv/bin/python -m bench.store --days database 20
Needs rsync, restic and borg.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import RDC, Cost, Table, arguments, machine, run, scratch

MB = 1e6

DAYS = 5
"""More puts than this are also shown one by one."""

SETTLED = 2.1
"""Seconds after which rdc believes that a change of a file shows in its times."""


Update = Callable[[Path], None]
"""Makes a directory equal to the next version."""


@dataclass(frozen=True, slots=True)
class Figures:
    sizes: Sequence[int]
    """Bytes of the store after each put."""
    puts: Sequence[Cost]
    restore: Cost
    sound: bool

    @property
    def added(self) -> int:
        """Bytes that the last put added."""
        return self.sizes[-1] - (self.sizes[-2] if len(self.sizes) > 1 else 0)


class Contender:
    """One tool with a store of its own in `place`."""

    name: str

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.store = place / "store"
        self._env = {**os.environ, **self.settings(place)}

    def settings(self, place: Path) -> Mapping[str, str]:
        """Return what is added to the environment."""
        return {"XDG_CACHE_HOME": str(place / "cache")}

    def make(self) -> None:
        """Make the store, unless the first put does."""

    def put(self, tree: Path, number: int) -> Cost:
        """Add a version."""
        raise NotImplementedError

    def restore(self, number: int, out: Path) -> tuple[Cost, Path]:
        """Restore a version. Return what it took, and where its tree is."""
        raise NotImplementedError

    def _run(self, *words: str | Path, cwd: Path | None = None) -> Cost:
        return run(words, env=self._env, cwd=cwd)


class Rdc(Contender):
    name = "rdc"

    def put(self, tree: Path, number: int) -> Cost:
        return self._run(*RDC, "store", "put", "-q", "--name=tree", tree, self.store)

    def restore(self, number: int, out: Path) -> tuple[Cost, Path]:
        return self._run(*RDC, "sync", "-q", f"{self.store}/@{number}/", f"{out}/"), out


class Restic(Contender):
    name = "restic"

    def settings(self, place: Path) -> Mapping[str, str]:
        return {**super().settings(place), "RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": str(self.store)}

    def make(self) -> None:
        self._run("restic", "init", "-q")

    def put(self, tree: Path, number: int) -> Cost:
        self._tree = tree
        return self._run("restic", "backup", "-q", tree)

    def restore(self, number: int, out: Path) -> tuple[Cost, Path]:
        cost = self._run("restic", "restore", "-q", "latest", "--target", out)
        return cost, out / str(self._tree).lstrip("/")


class Borg(Contender):
    name = "borg"

    def settings(self, place: Path) -> Mapping[str, str]:
        return {
            **super().settings(place),
            "BORG_BASE_DIR": str(place),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }

    def make(self) -> None:
        self._run("borg", "init", "-e", "none", self.store)

    def put(self, tree: Path, number: int) -> Cost:
        return self._run("borg", "create", "-C", "zstd,3", f"{self.store}::{number}", ".", cwd=tree)

    def restore(self, number: int, out: Path) -> tuple[Cost, Path]:
        out.mkdir()
        return self._run("borg", "extract", f"{self.store}::{number}", cwd=out), out


CONTENDERS = (Rdc, Restic, Borg)


def stored(store: Path) -> int:
    """Return the bytes of all files of a store."""
    return sum(path.stat().st_size for path in store.rglob("*") if path.is_file())


def update(tree: Path, version: Path, *, moved: bool) -> None:
    """Make a directory equal to a version. `moved`: under other names and in other directories."""
    run(("rsync", "-a", "--delete", f"{version}/", f"{tree}/"))
    if moved:
        files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
        for number, path in enumerate(files):
            (tree / "moved" / f"{number % 10}").mkdir(parents=True, exist_ok=True)
            path.rename(tree / "moved" / f"{number % 10}" / f"renamed {number}")


def is_equal(one: Path, other: Path) -> bool:
    """Return whether two trees have the same names and contents."""
    words = ("diff", "-rq", "--no-dereference", one, other)
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def versions_of(trees: Sequence[Path], *, moved: bool) -> Iterator[Update]:
    """Yield the updates to these trees. `moved`: all but the first under other names."""
    for number, tree in enumerate(trees):
        yield partial(update, version=tree, moved=moved and number > 0)


ROWS = 160_000
"""Rows of the database of the first day, of 295 bytes each."""

CHANGED, NEW = 0.01, 0.002
"""The shares of these rows that change, and that come, in a day. A quarter as many as come go."""


def days_of(number: int, of_rows: int) -> Iterator[Update]:
    """Yield the updates of a database from day to day. `of_rows`: those of the first day."""
    drawn = random.Random(number)
    words = ["".join(drawn.choices("abcdefghijklmnoprstuvwy", k=drawn.randrange(3, 10))) for _ in range(2000)]

    def row() -> tuple[bytes, str, str, float]:
        note = " ".join(drawn.choices(words, k=24))
        return drawn.randbytes(48), drawn.choice(words), note, round(drawn.expovariate(0.01), 2)

    def change(tree: Path, *, is_first: bool) -> None:
        tree.mkdir(exist_ok=True)
        with closing(sqlite3.connect(tree / "orders.db")) as database, database:
            if is_first:
                database.execute("create table orders (id integer primary key, token, who, note, sum)")
                database.execute("create index of_whom on orders (who)")
            else:
                ids = [one for (one,) in database.execute("select id from orders")]
                changed = drawn.sample(ids, int(of_rows * CHANGED))
                database.executemany("update orders set note = ?, sum = ? where id = ?",
                                     [(*row()[2:], one) for one in changed])  # fmt: skip
                database.executemany(
                    "delete from orders where id = ?",
                    [(one,) for one in drawn.sample(ids, int(of_rows * NEW / 4))],
                )
            rows = [row() for _ in range(of_rows if is_first else int(of_rows * NEW))]
            database.executemany("insert into orders (token, who, note, sum) values (?, ?, ?, ?)", rows)

    for day in range(number):
        yield partial(change, is_first=day == 0)


def measure(top: Path, updates: Iterator[Update], contenders: Sequence[Contender]) -> list[Figures]:
    """Put all versions into the store of each contender, and restore the last one."""
    tree, puts = top / "tree", [list[Cost]() for _ in contenders]
    sizes = [list[int]() for _ in contenders]
    for number, bring in enumerate(updates, 1):
        bring(tree)
        time.sleep(SETTLED)
        for at, contender in enumerate(contenders):
            if number == 1:
                contender.make()
            puts[at].append(contender.put(tree, number))
            sizes[at].append(stored(contender.store))
    found = []
    for at, contender in enumerate(contenders):
        cost, where = contender.restore(len(puts[at]), top / f"out-{contender.name}")
        found.append(Figures(sizes[at], puts[at], cost, is_equal(tree, where)))
    return found


def main() -> None:
    parser = arguments(__doc__, place=True)
    parser.add_argument("--versions", nargs="+", action="append", default=[], metavar="NAME TREE")
    parser.add_argument("--moved", nargs=3, action="append", default=[], metavar=("NAME", "OLD", "NEW"))
    parser.add_argument("--days", nargs=2, action="append", default=[], metavar=("NAME", "N"))
    parser.add_argument("--rows", type=int, default=ROWS, help="of the database of --days on its first day")
    options = parser.parse_args()
    print(machine())
    columns = ("stored, MB:", "last put added, KB:", "CPU s: puts:", "first put:", "last put:", "restore:")
    table = Table("corpus", "tool", *columns)
    jobs = [
        *[(name, versions_of([*map(Path, trees)], moved=False)) for name, *trees in options.versions],
        *[(name, versions_of([*map(Path, trees)], moved=True)) for name, *trees in options.moved],
        *[(name, days_of(int(days), options.rows)) for name, days in options.days],
    ]
    for name, updates in jobs:
        with scratch(options.place) as top:
            contenders = [kind(top / kind.name) for kind in CONTENDERS]
            figures = list(zip(contenders, measure(top, updates, contenders), strict=True))
        for contender, one in figures:
            table.row(
                name,
                contender.name if one.sound else f"{contender.name} (restored another tree)",
                f"{one.sizes[-1] / MB:.2f}",
                f"{one.added / 1e3:,.0f}",
                f"{sum([put.cpu for put in one.puts]):.2f}",
                f"{one.puts[0].cpu:.2f}",
                f"{one.puts[-1].cpu:.2f}",
                f"{one.restore.cpu:.2f}",
            )
        if len(figures[0][1].puts) > DAYS:
            for contender, one in figures:
                costs = " ".join(f"{put.cpu:.2f}" for put in one.puts)
                walls = " ".join(f"{put.wall:.2f}" for put in one.puts)
                print(f"{contender.name}: CPU s of each put: {costs}; wall s: {walls}")


if __name__ == "__main__":
    main()
