"""How much does each chunker find twice, at equal mean?

Question: which ratio of max to min should chunks have, and how do the cuts compare with other chunkers?
Metrics: unique bytes + 20 bytes a chunk, over all versions of a corpus, in per cent of FastCDC's at the same
mean. The mean is measured: each chunker's parameter is searched until total bytes / chunks is within 1 % of
the target, because chunkers at unequal means differ by more than by anything else.
Corpora: each argument is one corpus, versions (trees or files) separated by commas. A tree is one stream: its
files' contents in order of path, as an archive has them; small files would hide what cuts do.
Commands: .venv/bin/python scripts/bench_dedup.py [--json OUT] NAME=TREE,TREE,... ...
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rdc.kernel import Cutter, kernel_name  # noqa: E402

MEANS = (4 << 10, 8 << 10, 16 << 10, 64 << 10)
RATIOS = (2, 3, 4, 5, 6, 7)
PER_CHUNK = 20
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
        flags = ["-O3", "-std=c11", "-shared", "-fPIC", f"-I{ROOT}/rdc/kernel"]
        subprocess.run(["cc", *flags, f"{ROOT}/scripts/bench_chunkers.c", "-o", str(library)], check=True)
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
    """Cuts of all streams with the parameter that gives the mean, and the mean had."""
    total, size = sum(map(len, streams)), float(mean)
    for _ in range(12):
        ends = [chunker(data, size) for data in streams]
        had = total / sum(map(len, ends))
        if abs(had / mean - 1) < 0.01:
            break
        size *= mean / had
    return ends, had


def stored(streams: list[bytes], ends: list[Ends]) -> int:
    """Unique bytes, and PER_CHUNK for each chunk of each stream."""
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="NAME=TREE,TREE,...")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    chunkers = native() | {"fixed blocks": fixed} | {f"max = {r} min": winnowed(r) for r in RATIOS}
    print(f"kernel {kernel_name()}; per cent of FastCDC's unique bytes + {PER_CHUNK} a chunk, at equal mean")
    report: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for corpus in options.corpora:
        name, _, paths = corpus.partition("=")
        streams = [stream(Path(path)) for path in paths.split(",")]
        total = sum(map(len, streams))
        print(f"\n{name}: {len(streams)} versions, {total / 1e6:.0f} MB")
        report[name] = {}
        for mean in MEANS:
            row: dict[str, dict[str, float]] = {}
            for label, chunker in chunkers.items():
                ends, had = at_mean(chunker, streams, mean)
                kept = stored(streams, ends)
                row[label] = {"mean": round(had), "stored": kept, "of total": round(kept / total, 5)}
            reference = row["FastCDC"]["stored"]
            for values in row.values():
                values["of FastCDC"] = round(values["stored"] / reference, 5)
            report[name][f"{mean >> 10} KiB"] = row
            print(
                f"{mean >> 10:3} KiB ({reference / total:.1%} of all)  "
                + "  ".join(f"{label} {100 * values['of FastCDC']:.2f}" for label, values in row.items()),
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
