"""Measures cuts and traits by kernel variant and by input.

Question: does every variant keep its speed on every input, and how does it compare with other chunkers?
Metrics: GB/s (10^9 bytes of input per second of this thread's CPU time), the median of ROUNDS interleaved
runs. A busy machine then slows all alike. Ratios are ratios of medians. Cuts + BLAKE3 with one and two
threads is wall time, with and without the time that a thread waited for a CPU.
Beside: a scalar 64-bit Rabin sliding hash (scalar.c), pyfastcdc and fastcdc (pip install pyfastcdc
fastcdc; the output names them if they are missing), and one pass of reading memory. FastCDC skips the first
bytes of each chunk and takes no samples. The cuts of rdc always include the traits.
Corpora: generated data (random, runs, periods, sparse, no zero lead byte), fixtures/kernel/*.bin repeated,
and the files and trees given as arguments, SIZE of each.
Commands: .venv/bin/python -m bench.kernel [--json OUT] [--rounds N] [--size MIB] PATH...
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import TOP, arguments, in_turns
from rdc.chunking import Chunker, ChunkParams
from rdc.kernel import _kernel, kernel_name
from tests.support.kernel.kernel_streams import STREAMS, with_leads

SPAN = 1 << 20
MEANS = {"16 KiB": 16 << 10, "1 KiB": 1 << 10}


def sizes_for(mean: int) -> tuple[int, int]:
    """Return the min and max (4 min) for a mean; on random data the mean is 2.63 min."""
    low = round(mean / 2.63)
    return low, 4 * low


def tiled(piece: bytes, size: int) -> bytes:
    return (piece * (size // len(piece) + 1))[:size]


def tree(path: Path, size: int) -> bytes:
    if path.is_file():
        with path.open("rb") as file:
            return file.read(size)
    parts, total = [], 0
    for file_path in sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink()):
        parts.append(file_path.read_bytes())
        total += len(parts[-1])
        if total >= size:
            break
    return b"".join(parts)[:size]


def inputs(size: int, paths: list[Path]) -> dict[str, bytes]:
    rng = random.Random(1)
    sparse = bytearray(1 << 20)
    for _ in range(len(sparse) // 500):
        sparse[rng.randrange(len(sparse))] = rng.randrange(256)
    found = {"random": rng.randbytes(size)}
    found |= {f"real: {'/'.join(path.parts[-2:])}": tree(path, size) for path in paths}
    found |= {
        "zeros": bytes(size),
        "period 2": b"ab" * (size // 2),
        "period 100": tiled(rng.randbytes(100), size),
        "period 3000": tiled(rng.randbytes(3000), size),
        "sparse": tiled(bytes(sparse), size),
        "no zero lead": tiled(
            with_leads(rng.randbytes(16), (rng.randint(1, 255) for _ in range(1 << 20))), size
        ),
    }
    # Random order: the branch predictor would learn short repeated pieces.
    for kind in (
        "leads mostly 0",
        "leads 0 and 1",
        "leads 1 and 2",
        "leads ramp",
        "leads climb",
        "two features",
        "hardly dense",
        "both ways",
        "by turns",
    ):
        found[f"hostile: {kind}"] = tiled(STREAMS[kind](rng, 1 << 20), size)
    for path in sorted((TOP / "fixtures" / "kernel").glob("*.bin")):
        found[f"hostile: {path.stem}"] = tiled(path.read_bytes(), size)
    return found


def native() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "scalar.so"
        sources = [f"{TOP}/bench/scalar.c", f"{TOP}/rdc/kernel/cut/tables.c"]
        flags = ["-O3", "-std=c11", "-shared", "-fPIC", f"-I{TOP}/rdc/kernel"]
        subprocess.run(["cc", *flags, *sources, "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.scalar_cuts.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    loaded.scalar_cuts.restype = ctypes.c_size_t
    loaded.read_memory.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    loaded.read_memory.restype = ctypes.c_uint64
    return loaded


def cut(data: bytes, sizes: tuple[int, int], variant: str) -> None:
    cutter, view = _kernel.Cutter(*sizes, variant=variant), memoryview(data)
    for at in range(0, len(data), SPAN):
        cutter.feed(view[at : at + SPAN])
    cutter.finish()
    cutter.traits()


def contenders() -> dict[str, Callable[[bytes, int], object]]:
    """Every candidate as a function of data and mean."""
    library = native()
    found: dict[str, Callable[[bytes, int], object]] = {}
    for variant in _kernel.usable():
        found[variant] = lambda data, mean, variant=variant: cut(data, sizes_for(mean), variant)  # type: ignore[misc] # variant= is bound here
    found["scalar hash"] = lambda data, mean: library.scalar_cuts(data, len(data), mean - 1)
    found["read memory"] = lambda data, mean: library.read_memory(data, len(data))
    try:
        import pyfastcdc

        found["pyfastcdc"] = lambda data, mean: sum(1 for _ in pyfastcdc.FastCDC(mean).cut_buf(data))
    except ImportError:
        print("pyfastcdc is not installed: not measured", file=sys.stderr)
    try:
        from fastcdc import fastcdc_cy

        found["fastcdc"] = lambda data, mean: sum(
            1 for _ in fastcdc_cy.fastcdc_cy(data, mean // 4, mean, mean * 8)
        )
    except ImportError:
        print("fastcdc is not installed: not measured", file=sys.stderr)
    return found


def speeds(
    data: bytes, mean: int, rounds: int, what: dict[str, Callable[[bytes, int], object]]
) -> dict[str, float]:
    def once(function: Callable[[bytes, int], object]) -> int:
        start = time.thread_time_ns()
        function(data, mean)
        return time.thread_time_ns() - start

    times = in_turns({name: partial(once, function) for name, function in what.items()}, rounds)
    return {name: round(len(data) / statistics.median(t), 3) for name, t in times.items()}


def cut_and_digest(data: bytes, mean: int) -> None:
    """Cut and digest as signing computes them for bytes in memory."""
    chunker, view = Chunker(ChunkParams(*sizes_for(mean))), memoryview(data)
    for at in range(0, len(data), SPAN):
        chunker.feed_columns(view[at : at + SPAN])
    chunker.finish_columns()


@dataclass(frozen=True, slots=True)
class Took:
    """Nanoseconds of one thread: by the clock, and the part in which it waited for a CPU."""

    wall: int
    waiting: int


def waiting_ns() -> int:
    """Nanoseconds that this thread has waited in a run queue (the second number of Linux's schedstat)."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1])


def digest_together(data: bytes, mean: int, count: int) -> list[Took]:
    barrier, took = threading.Barrier(count), []

    def work() -> None:
        barrier.wait()
        waiting, wall = waiting_ns(), time.perf_counter_ns()
        cut_and_digest(data, mean)
        took.append(Took(time.perf_counter_ns() - wall, waiting_ns() - waiting))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def digest_speeds(data: bytes, mean: int, rounds: int) -> dict[str, float]:
    """Return the GB/s of cuts + BLAKE3 by one thread, and by two threads over all data each.

    Other programs take CPUs away, so the second figure of each kind leaves out the time a thread waited in a
    run queue. Waiting for the interpreter's lock is not left out.
    """
    rows: dict[str, list[float]] = {}
    for _ in range(rounds):
        (one,), two = digest_together(data, mean, 1), digest_together(data, mean, 2)
        wall, had = max(t.wall for t in two), max(t.wall - t.waiting for t in two)
        for name, value in {
            "one thread": len(data) / one.wall,
            "one thread, with a CPU": len(data) / (one.wall - one.waiting),
            "two threads": 2 * len(data) / wall,
            "two threads, with a CPU each": 2 * len(data) / had,
            "ratio": 2 * one.wall / wall,
            "ratio, with a CPU each": 2 * (one.wall - one.waiting) / had,
        }.items():
            rows.setdefault(name, []).append(value)
    return {name: round(statistics.median(values), 2) for name, values in rows.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, default=32, help="MiB of each input")
    options = parser.parse_args()
    what, corpora = contenders(), inputs(options.size << 20, options.paths)
    print(f"kernel chosen: {kernel_name()}; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    cuts: dict[str, dict[str, dict[str, float]]] = {}
    for mean_name, mean in MEANS.items():
        print(f"\ncuts, {mean_name} mean, GB/s\n{'':34}" + "".join(f"{name:>12}" for name in what))
        cuts[mean_name] = {}
        for name, data in corpora.items():
            row = speeds(data, mean, options.rounds, what)
            cuts[mean_name][name] = row
            print(f"{name:34}" + "".join(f"{speed:12.2f}" for speed in row.values()), flush=True)
    print("\ncuts + BLAKE3 through Python, GB/s")
    digests = {}
    for name, mean in {"32 KiB": 32 << 10, "16 KiB": 16 << 10}.items():
        digests[name] = digest_speeds(corpora["random"], mean, options.rounds)
        print(f"{name:8}", digests[name], flush=True)
    if options.json:
        report = {"kernel": kernel_name(), "unit": "GB/s", "cuts": cuts, "cuts and BLAKE3": digests}
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
