"""Measures how many duplicate bytes each chunker finds at equal mean chunk size.

Question: which ratio of max to min should chunks have, and how does rdc compare with other chunkers?
Metrics: unique bytes plus 20 bytes per chunk over all versions of a corpus, in per cent of FastCDC's at the
same mean. The mean is measured, because chunkers at unequal means differ by more than by anything else: the
parameter of each chunker is searched until total bytes / chunks is within 1 % of the target. In a corpus
with few chunks chance decides. Such a corpus is measured several times, each time with all bytes XOR another
constant, and the results are averaged.
Corpora: each argument is one corpus: versions (trees or files) separated by commas. A tree is one stream, the
contents of its files in order of path, as in an archive. Files cut one by one would hide the effect of cuts,
because many are smaller than a chunk.
Commands: .venv/bin/python -m bench.dedup [--json OUT] [--mean KIB ...] NAME=TREE,TREE,... ...
New results are added to those in OUT.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3

from bench.harness import TOP, arguments
from rdc.kernel import Cutter, kernel_name

MEANS = (4 << 10, 8 << 10, 16 << 10, 64 << 10)
RATIOS = (2, 3, 4, 5, 6, 7)
PER_CHUNK = 20
DRAWS = ((1_000, 64), (10_000, 8))
"""(chunks, draws): a corpus with fewer chunks is measured this many times."""
Ends = list[int]
Chunker = Callable[[bytes, float], Ends]


def stream(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    return b"".join(p.read_bytes() for p in files)


def native() -> dict[str, Chunker]:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "chunkers.so"
        flags = ["-O3", "-std=c11", "-shared", "-fPIC", f"-I{TOP}/rdc/kernel"]
        subprocess.run(["cc", *flags, f"{TOP}/bench/chunkers.c", "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))

    def chunker(name: str) -> Chunker:
        function = getattr(loaded, name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_double, ctypes.c_void_p]
        function.restype = ctypes.c_size_t

        def cut(data: bytes, size: float) -> Ends:
            ends = (ctypes.c_uint64 * int(len(data) / (size / 4) + 2))()
            return list(ends[: function(data, len(data), size, ends)])

        return cut

    return {"FastCDC": chunker("fastcdc_cuts"), "Rabin with a mask": chunker("rabin_cuts")}


def fixed(data: bytes, size: float) -> Ends:
    step = round(size)
    return [*range(step, len(data), step), len(data)]


def winnowed(ratio: int) -> Chunker:
    def cut(data: bytes, size: float) -> Ends:
        low = max(64, round(2 * size / (1 + ratio)))
        cutter = Cutter(low, ratio * low)
        return cutter.feed(data) + cutter.finish()

    return cut


def at_mean(chunker: Chunker, streams: list[bytes], mean: int) -> tuple[list[Ends], float]:
    """Return the cuts of all streams with the parameter that gives `mean`, and the mean that was reached."""
    total, size = sum(map(len, streams)), float(mean)
    for _ in range(12):
        ends = [chunker(data, size) for data in streams]
        had = total / sum(map(len, ends))
        if abs(had / mean - 1) < 0.01:
            break
        size *= mean / had
    return ends, had


def stored(streams: list[bytes], ends: list[Ends]) -> int:
    """Return the unique bytes plus PER_CHUNK for each chunk of each stream."""
    seen: set[bytes] = set()
    unique = 0
    for data, cuts in zip(streams, ends, strict=True):
        view, before = memoryview(data), 0
        for end in cuts:
            digest = blake3(view[before:end]).digest(16)
            if digest not in seen:
                seen.add(digest)
                unique += end - before
            before = end
    return unique + PER_CHUNK * sum(map(len, ends))


def turned(streams: list[bytes], draw: int) -> list[bytes]:
    """Return the streams with all bytes XOR a constant: equal ranges stay equal, and all hashes change."""
    mask = draw * 0x9D & 0xFF
    return (
        [data.translate(bytes(byte ^ mask for byte in range(256))) for data in streams] if mask else streams
    )


def row_for(streams: list[bytes], mean: int, chunkers: dict[str, Chunker]) -> dict[str, dict[str, float]]:
    """Return for each chunker the mean reached, and the bytes stored and their share of the total, averaged
    over draws."""
    total = sum(map(len, streams))
    draws = next((draws for chunks, draws in DRAWS if total / mean < chunks), 1)
    had, kept = dict.fromkeys(chunkers, 0.0), dict.fromkeys(chunkers, 0)
    for draw in range(draws):
        drawn = turned(streams, draw)
        for label, chunker in chunkers.items():
            ends, size = at_mean(chunker, drawn, mean)
            had[label] += size / draws
            kept[label] += stored(drawn, ends)
    row: dict[str, dict[str, float]] = {}
    for label in chunkers:
        row[label] = {
            "mean": round(had[label]),
            "stored": round(kept[label] / draws),
            "of total": round(kept[label] / draws / total, 5),
            "of FastCDC": round(kept[label] / kept["FastCDC"], 5),
        }
    return row


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("corpora", nargs="+", metavar="NAME=TREE,TREE,...")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--mean", type=int, action="append", metavar="KIB", help="only this; may be repeated")
    options = parser.parse_args()
    chunkers = native() | {"fixed blocks": fixed} | {f"max = {r} min": winnowed(r) for r in RATIOS}
    print(f"kernel {kernel_name()}; per cent of FastCDC's unique bytes + {PER_CHUNK} a chunk, at equal mean")
    means = [kib << 10 for kib in options.mean] if options.mean else MEANS
    report: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    if options.json and options.json.exists():
        report = json.loads(options.json.read_text())
    for corpus in options.corpora:
        name, _, paths = corpus.partition("=")
        streams = [stream(Path(path)) for path in paths.split(",")]
        total = sum(map(len, streams))
        print(f"\n{name}: {len(streams)} versions, {total / 1e6:.0f} MB")
        for mean in means:
            row = row_for(streams, mean, chunkers)
            report.setdefault(name, {})[f"{mean >> 10} KiB"] = row
            print(
                f"{mean >> 10:3} KiB ({row['FastCDC']['of total']:.1%} of all)  "
                + "  ".join(f"{label} {100 * values['of FastCDC']:.2f}" for label, values in row.items()),
                flush=True,
            )
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
