"""Measures how well traits find similar files, and what an index of a million files costs.

Questions: which samples (twelve or sixteen of six bits, how many matches) of which features (windows or
chunks) find versions of files, and how many unrelated files pass? Are bit planes or inverted lists better?
Metrics: recall is the share of file pairs with at least that many matches, by their true Jaccard resemblance:
of all windows with lead < 4 of a file, and of its chunks of 1 KiB. False candidates per million pairs of
files with nothing in common. Bytes per file, allocated and resident. Milliseconds of CPU per query, median
and worst, over queries that find nothing, little, or a flood of files with equal traits.
Pairs: files that differ between two versions of a tree; and files of these trees in which runs of lines (or
of 4 KiB) were replaced by those of other files until little was left, so that every resemblance occurs.
Commands: .venv/bin/python -m bench.similarity [--json OUT] [--files N] NAME=OLD,NEW ...
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import resource
import sqlite3
import statistics
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blake3 import blake3

from bench.harness import TOP, arguments
from rdc.catalog.file_state import params_number
from rdc.catalog.similar import SimilarFiles, SimilarityQuery
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.kernel import Cutter
from rdc.signature.codec import encode_signature
from rdc.signature.tree import sign
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.traits import Traits, coarse_traits, probability_of_matches

SMALL, LARGE = (2_000, 20_000), (65_536, 16 << 20)
BORDER = (24_576, 65_536)
PAIRS_OF_ONE_TREE = 1500
GROWN_OF_ONE_TREE = 250
BIN = 0.1
MULTIPLIERS = array(
    "Q", (int.from_bytes(hashlib.sha256(b"rdc traits v1 %d" % g).digest()[:8], "big") | 1 for g in range(4))
)


class Native:
    """The functions of similarity.c, built with the kernel's scalar variant."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "similarity.so"
            kernel = TOP / "rdc" / "kernel"
            sources = [
                TOP / "bench" / "similarity.c",
                kernel / "cut/scalar.c",
                kernel / "cut/traits.c",
            ]
            command = ["cc", "-O3", "-std=c11", "-shared", "-fPIC", f"-I{kernel}", *map(str, sources)]
            subprocess.run([*command, "-o", str(library)], check=True)
            self._c = ctypes.CDLL(str(library))
        self._c.jaccard.restype = ctypes.c_double
        for name in ("features", "offsets_query", "gaps_build", "gaps_query"):
            getattr(self._c, name).restype = ctypes.c_size_t

    def features(self, data: bytes, below: int) -> array[int]:
        out = array("Q", bytes(8 * len(data)))
        padded = bytes(64) + data
        count = self._c.features(padded, ctypes.c_size_t(len(data)), below, at(out))
        return out[:count]

    def jaccard(self, a: array[int], b: array[int]) -> float:
        return float(self._c.jaccard(at(a), ctypes.c_size_t(len(a)), at(b), ctypes.c_size_t(len(b))))

    def samples(self, features: array[int], count: int) -> bytes:
        out = (ctypes.c_uint8 * count)()
        self._c.samples(at(features), ctypes.c_size_t(len(features)), count, at(MULTIPLIERS), out)
        return bytes(out)

    def lists(self, packed: bytes, files: int) -> dict[str, tuple[float, Callable[[bytes], int]]]:
        """Both variants of inverted lists: bytes per file, and a function that queries."""
        blocks, n = -(-files // 65_536), ctypes.c_size_t(files)
        start, place = array("I", bytes(4 * 770 * blocks)), array("I", bytes(4 * 769 * blocks))
        offset, gap = array("H", bytes(24 * 65_536 * blocks)), array("B", bytes(36 * files))
        self._c.offsets_build(packed, n, at(start), at(offset))
        size = self._c.gaps_build(n, at(start), at(offset), at(place), at(gap))
        return {
            "16-bit offsets": (
                24 + 4 * len(start) / files,
                lambda query: int(self._c.offsets_query(query, n, at(start), at(offset))),
            ),
            "gaps": (
                (size + 4 * len(place)) / files,
                lambda query: int(self._c.gaps_query(query, n, at(place), at(gap))),
            ),
        }


def at(column: array[int]) -> ctypes.c_void_p:
    return ctypes.c_void_p(column.buffer_info()[0])


NATIVE = Native()


# ---- recall ----


@dataclass(frozen=True)
class Described:
    """The samples of one file by each method."""

    truth: array[int]
    chunks: array[int]
    windows: bytes
    sixteen: bytes
    whole: bytes
    """Samples of chunks of 16 KiB."""
    fine: bytes
    """Samples of chunks of 1 KiB."""


def chunk_names(data: bytes, mean: int) -> array[int]:
    params = ChunkParams.for_mean(mean)
    cutter = Cutter(params.min_size, params.max_size)
    ends, before, names = cutter.feed(data) + cutter.finish(), 0, set()
    for end in ends:
        names.add(int.from_bytes(blake3(data[before:end]).digest(8), "little"))
        before = end
    return array("Q", sorted(names))


def describe(data: bytes) -> Described | None:
    """Return the samples of a file. None: it has no features."""
    truth = NATIVE.features(data, 4)
    features = truth if len(data) < 65_536 else NATIVE.features(data, 1)
    if not features:
        return None
    sixteen = NATIVE.samples(features, 16)
    fine = chunk_names(data, 1024)
    return Described(
        truth,
        fine,
        sixteen[:12],
        sixteen,
        NATIVE.samples(chunk_names(data, 16_384), 12),
        NATIVE.samples(fine, 12),
    )


METHODS: dict[str, tuple[Callable[[Described], bytes], int]] = {
    "12 x 6, 4 matches": (lambda d: d.windows, 4),
    "12 x 6, 3 matches": (lambda d: d.windows, 3),
    "16 x 6, 4 matches": (lambda d: d.sixteen, 4),
    "16 x 6, 5 matches": (lambda d: d.sixteen, 5),
    "1 KiB chunks, 12 x 6, 4 matches": (lambda d: d.fine, 4),
    "16 KiB chunks, 12 x 6, 4 matches": (lambda d: d.whole, 4),
}


def found(a: Described, b: Described) -> dict[str, bool]:
    return {
        name: sum(x == y for x, y in zip(part(a), part(b), strict=True)) >= least
        for name, (part, least) in METHODS.items()
    }


def files_of(top: Path) -> dict[str, int]:
    return {
        str(p.relative_to(top)): p.stat().st_size
        for p in sorted(top.rglob("*"))
        if p.is_file() and not p.is_symlink()
    }


def changed_pairs(old: Path, new: Path, rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of files that have the same path in two versions and differ."""
    olds, news = files_of(old), files_of(new)
    names = [name for name in olds if name in news]
    rng.shuffle(names)
    given = 0
    for name in names:
        if any(not (SMALL[0] <= size <= LARGE[1]) for size in (olds[name], news[name])):
            continue
        a, b = (old / name).read_bytes(), (new / name).read_bytes()
        if a != b:
            yield a, b
            given += 1
        if given == PAIRS_OF_ONE_TREE:
            return


def mixed_pairs(top: Path, rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of a file and its copy with runs of lines (or of 4 KiB) replaced by those of other files."""
    sizes = files_of(top)
    for low, high in (SMALL, (LARGE[0], 2 << 20)):
        names = [name for name, size in sizes.items() if low <= size <= high]
        if len(names) < 2:
            continue
        for _ in range(PAIRS_OF_ONE_TREE // 2):
            data, other = ((top / name).read_bytes() for name in rng.sample(names, 2))
            one, two = pieces(data), pieces(other)
            # A replaced run loses its ends too, so the part that stays is drawn evenly over the resemblance.
            kept = 2 * (j := rng.random()) / (1 + j)
            run = max(1, len(one) // rng.choice((3, 10, 30)))
            for start in range(0, len(one), run):
                if rng.random() > kept:
                    begin = rng.randrange(len(two))
                    one[start : start + run] = two[begin : begin + run]
            yield data, b"".join(one)


def grown_pairs(top: Path, rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of a file of 24 to 64 KiB and its changed copy of 64 KiB or more. The copy lacks some runs and
    has runs of other files."""
    sizes = files_of(top)
    names = [name for name, size in sizes.items() if BORDER[0] <= size < BORDER[1]]
    others = [name for name, size in sizes.items() if 8_000 < size < 400_000]
    rng.shuffle(names)
    for name in names[:GROWN_OF_ONE_TREE]:
        data = (top / name).read_bytes()
        one, kept = pieces(data), rng.uniform(0.5, 1)
        run = max(1, len(one) // rng.choice((3, 10, 30)))
        two = [part for at in range(0, len(one), run) for part in one[at : at + run] if rng.random() <= kept]
        while (size := sum(map(len, two))) < BORDER[1]:
            other = pieces((top / rng.choice(others)).read_bytes())
            length = rng.randrange(1, 60)
            begin, place = rng.randrange(max(1, len(other) - length)), rng.randrange(len(two) + 1)
            two[place:place] = other[begin : begin + length]
        if size < 6 * BORDER[1]:
            yield data, b"".join(two)


def recall_across(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """Recall by resemblance of windows if one file is smaller than 64 KiB: with the traits of both
    signatures, and with the smaller file's coarse traits."""
    bins: dict[int, list[tuple[bool, bool]]] = {}
    for small, large in pairs:
        one, two = describe(small), describe(large)
        coarse, traits = coarse_traits(small), sign(large, SYNC_PARAMS).traits
        if one is None or two is None or not coarse or not traits:
            continue
        own = Traits(sign(small, SYNC_PARAMS).traits).matches(Traits(traits)) >= 4
        hits = own, Traits(coarse).matches(Traits(traits)) >= 4
        bins.setdefault(min(9, int(NATIVE.jaccard(one.truth, two.truth) / BIN)), []).append(hits)
    return {
        f"{number * BIN:.1f}": {
            "pairs": len(rows),
            "traits of each": round(sum(own for own, _ in rows) / len(rows), 4),
            "coarse traits": round(sum(coarse for _, coarse in rows) / len(rows), 4),
        }
        for number, rows in sorted(bins.items())
    }


def pieces(data: bytes) -> list[bytes]:
    if b"\0" not in data[:1000] and data.count(b"\n") > len(data) / 500:
        return data.splitlines(keepends=True)
    return [data[at : at + 4096] for at in range(0, len(data), 4096)]


def recall_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    """Recall by size class and resemblance. Checks that the kernel's traits equal those computed here."""
    bins: dict[tuple[str, str, int], list[dict[str, bool]]] = {}
    for a, b in pairs:
        one, two = describe(a), describe(b)
        if one is None or two is None:
            continue
        assert bytes(Traits(sign(a, SYNC_PARAMS).traits).samples) == one.windows
        low, high = sorted((len(a), len(b)))
        if high < LARGE[0]:
            kind = "2-20 KB" if SMALL[0] <= low and high <= SMALL[1] else "other small ones"
        else:
            kind = "64 KiB and more" if low >= LARGE[0] else "across 64 KiB"
        hits = found(one, two)
        for what, j in (
            ("windows", NATIVE.jaccard(one.truth, two.truth)),
            ("chunks of 1 KiB", NATIVE.jaccard(one.chunks, two.chunks)),
        ):
            bins.setdefault((kind, what, min(9, int(j / BIN))), []).append(hits)
    report: dict[str, Any] = {}
    for (kind, what, number), rows in sorted(bins.items()):
        row = report.setdefault(kind, {}).setdefault(what, {})
        row[f"{number * BIN:.1f}"] = {"pairs": len(rows)} | {
            name: round(sum(hits[name] for hits in rows) / len(rows), 4) for name in METHODS
        }
    return report


def false_candidates(trees: list[Path], rng: random.Random) -> dict[str, Any]:
    """Count how many of a million pairs of unrelated files pass as similar. Unrelated: they have no window in
    common."""
    report: dict[str, Any] = {}
    for kind, (low, high) in (("2-20 KB", SMALL), ("64 KiB and more", LARGE)):
        described: list[list[Described]] = []
        for top in trees:
            names = [name for name, size in files_of(top).items() if low <= size <= high]
            rng.shuffle(names)
            found_here = (describe((top / name).read_bytes()) for name in names[:700])
            described.append([one for one in found_here if one is not None])
        passed, pairs = dict.fromkeys(METHODS, 0), 0
        for group in described:
            for i, a in enumerate(group):
                for b in group[:i]:
                    hits = found(a, b)
                    if not any(hits.values()):
                        pairs += 1  # a pair that no method finds counts, whatever its resemblance
                    elif NATIVE.jaccard(a.truth, b.truth) < 0.02:
                        pairs += 1
                        for name in METHODS:
                            passed[name] += hits[name]
        report[kind] = {"pairs": pairs} | {name: round(1e6 * n / pairs, 1) for name, n in passed.items()}
    report["by the formula"] = {
        "12 x 6, 4 matches": round(1e6 * probability_of_matches(0, 4), 1),
        "12 x 6, 3 matches": round(1e6 * probability_of_matches(0, 3), 1),
        "16 x 6, 4 matches": round(1e6 * probability_of_matches(0, 4, 16), 1),
        "16 x 6, 5 matches": round(1e6 * probability_of_matches(0, 5, 16), 1),
    }
    return report


# ---- cost ----


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def timed(call: Callable[[bytes], object], queries: list[bytes]) -> dict[str, float]:
    times = []
    for query in queries:
        before = time.thread_time()
        call(query)
        times.append(1e3 * (time.thread_time() - before))
    return {"median ms": round(statistics.median(times), 3), "worst ms": round(max(times), 3)}


def cost(files: int, rng: random.Random) -> dict[str, Any]:
    """Memory and query times of an index of this many files: unrelated ones, and floods of equal traits."""
    report: dict[str, Any] = {"files": files}
    flood = rng.randbytes(9)
    contents: dict[str, Callable[[int], tuple[bytes, int]]] = {
        "unrelated files": lambda i: (rng.randbytes(9), rng.randrange(100_000)),
        "equal traits, any size": lambda i: (flood, rng.randrange(100_000)),
        "equal traits, sizes ascending": lambda i: (flood, i),
        "equal traits and size": lambda i: (flood, 4096),
        "a tenth equal": lambda i: (flood if i % 10 == 0 else rng.randbytes(9), rng.randrange(100_000)),
    }
    for name, make in contents.items():
        columns = [make(i) for i in range(files)]
        before, began = resident(), time.thread_time()
        index = SimilarityIndex()
        index.add_many(range(files), [traits for traits, _ in columns], [size for _, size in columns])
        built = time.thread_time() - began
        queries = [columns[rng.randrange(files)][0] if i % 2 else rng.randbytes(9) for i in range(100)]
        queries += [flood] * 50

        def ask(query: bytes, index: SimilarityIndex = index) -> None:
            index.query(Traits(query), rng.choice((1, 8, 64)), size=rng.choice((0, 4096, 1 << 40)))

        row: dict[str, Any]
        row = report[name] = {"bytes a file": round(index.memory / files, 2), "built in s": round(built, 2)}
        if len(report) == 2:  # later indexes reuse memory that earlier ones freed
            row["resident bytes a file"] = round((resident() - before) / files, 2)
        row |= timed(ask, queries)
        many = [Traits(rng.randbytes(9)) for _ in range(256)]
        began = time.thread_time()
        list(index.query_many(many, [0] * 256))
        row["one of many ms"] = round(1e3 * (time.thread_time() - began) / 256, 3)
        for least in (4, 6):
            if name == "unrelated files" or least == 6:
                began, pairs = time.thread_time(), index.pairs(least)
                count = sum(1 for _ in pairs)
                row[f"all pairs of {least} matches"] = {
                    "pairs": count,
                    "s": round(time.thread_time() - began, 2),
                    "flooded": pairs.flooded,
                    "skipped": pairs.skipped,
                }
        packed = b"".join(traits for traits, _ in columns)
        for form, (size, call) in NATIVE.lists(packed, files).items():
            # Like the index, the lists have each file's number and size, and a table to look it up.
            row[form] = {"bytes a file": round(size, 2)} | timed(call, queries)
        print(name, json.dumps(row), flush=True)
    return report


@dataclass(frozen=True)
class OpenedDatabase:
    """The part of a Catalog that SimilarFiles needs."""

    connection: sqlite3.Connection

    def read(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        return work(self.connection)

    def flush(self) -> None:
        pass


def catalog_cost(files: int, rng: random.Random) -> dict[str, Any]:
    """Return the times of the first query to a catalog of this many small files, and of a later one."""
    from rdc.catalog.database import Database

    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        database = Database(Path(folder))
        value = encode_signature(sign(rng.randbytes(10_000), SYNC_PARAMS))
        number = params_number(SYNC_PARAMS.id)

        def fill(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT INTO signature (file_system, inode, params, used, size, path, root, stamp, value)"
                " VALUES (7, ?, ?, 0, ?, ?, ?, ?, ?)",
                (
                    (
                        i,
                        number,
                        rng.randrange(100_000),
                        b"/home/somebody/projects/tree/package%d/source_file_%d.py" % (i // 40, i),
                        rng.randbytes(32),
                        bytes(16),
                        value[:22] + rng.randbytes(9) + value[31:],
                    )
                    for i in range(files)
                ),
            )

        assert database.write(fill)
        size = sum(p.stat().st_size for p in Path(folder).iterdir())
        opened: Any = OpenedDatabase(sqlite3.connect(database.path))
        similar = SimilarFiles(opened, b"/home/somebody", SYNC_PARAMS)
        began = time.thread_time()
        assert len(similar) == files
        first = time.thread_time() - began
        queries = [SimilarityQuery(rng.randbytes(9), 5, b"projects/tree/new") for _ in range(256)]
        began = time.thread_time()
        list(similar.query_many(queries))
        later = time.thread_time() - began
        opened.connection.close()
        database.close()
    return {
        "files": files,
        "catalog MB": round(size / 1e6, 1),
        "first question s": round(first, 3),
        "one of many ms": round(1e3 * later / 256, 3),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("trees", nargs="*", metavar="NAME=OLD,NEW")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--files", type=int, default=1_000_000, help="in the index; 0: only recall")
    options = parser.parse_args()
    rng = random.Random(1)
    report: dict[str, Any] = {}
    trees = [[Path(path) for path in tree.partition("=")[2].split(",")] for tree in options.trees]
    if trees:
        # One pair at a time, because the files of all trees take gigabytes.
        report["versions"] = recall_of(pair for old, new in trees for pair in changed_pairs(old, new, rng))
        report["mixed"] = recall_of(pair for old, _ in trees for pair in mixed_pairs(old, rng))
        report["grown across 64 KiB"] = recall_across(
            pair for _, new in trees for pair in grown_pairs(new, random.Random(2))
        )
        report["false candidates a million"] = false_candidates([old for old, _ in trees], rng)
        print(json.dumps(report, indent=1), flush=True)
    if options.files:
        report["index"] = cost(options.files, rng)
        report["catalog"] = [catalog_cost(n, rng) for n in (130_000, options.files)]
        print(json.dumps(report["catalog"]))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
