"""Measures samples of sets beside rensa, FastSketchLSH and datasketch: documents a second, memory, and error.

Questions: how many documents a second does each library sample, from the same 64-bit features, with 128
samples and one thread? How far are the estimates from the truth? How many packed samples compare a second?
Metrics: documents a second is the best of some rounds, in CPU time. Memory: what the peak of the process
grew over its input. Error is the mean squared error at J = .5 as a share of J (1 - J) / 128, over pairs of
sets whose union has 300 features; independent samples have 1. Bias is in standard errors.
Each library and length runs in a process of its own, and lengths take turns, so that no library has all the
quiet moments. A library that the second Python lacks is named and left out.
Settings: rdc's `filled` is one_permutation(fill=True), whose signatures compare across all lengths; `bins` is
without filling, `functions` is minhash. rensa's `flat` and `rho` are the two matrix calls from flat hashes,
with their defaults. FastSketchLSH is batch_csr(prehashed=True), datasketch is MinHash.update_batch with the
lower 32 bits as its hash, of a twentieth of the documents.
Commands: python3 -m venv PEERS && PEERS/bin/pip install rensa datasketch FastSketchLSH numpy
          .venv/bin/python -m bench.samples --peers PEERS/bin/python [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parent.parent
LENGTHS = (16, 200, 1_000, 10_000)
K = 128
EMPTY = 0xFFFFFFFF
"""rdc's sample of an empty bin; such bins are left out of estimates."""
OURS = ("rdc filled", "rdc bins", "rdc functions")
PEERS = ("rensa flat", "rensa rho", "FastSketchLSH", "datasketch")
PAIRS, UNION = 1_500, 300
"""Pairs of sets for the error."""

Sampler = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", help="the Python that has the other libraries")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--features", type=int, default=400_000, help="of all documents of a length")
    parser.add_argument("--rounds", type=int, default=15)
    child = ("LIBRARY", "FILE", "TOKENS", "ROUNDS")
    parser.add_argument("--child", nargs=4, metavar=child, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, file, tokens, rounds = options.child
        print(json.dumps(measured(name, Path(file), int(tokens), int(rounds))))
        return
    report: dict[str, dict[str, object]] = {"settings": {"k": K, "features": options.features}}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "features"
        for tokens in LENGTHS:
            file.write_bytes(Random(tokens).randbytes(8 * (options.features // tokens * tokens)))
            report[f"{tokens} tokens"] = row(options.peers, file, tokens, options.rounds)
        file.write_bytes(pairs_of_sets())
        report["error at J = .5"] = row(options.peers, file, 0, 1)
    report["compared"] = compared()
    print("compared", json.dumps(report["compared"]))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def row(peers: str | None, file: Path, tokens: int, rounds: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in (*OURS, *(PEERS if peers else ())):
        python = sys.executable if name in OURS else str(peers)
        command = [python, __file__, "--child", name, str(file), str(tokens), str(rounds)]
        environment = os.environ | {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        last = (done.stdout or done.stderr).strip().rpartition("\n")[2]
        found[name] = json.loads(last) if not done.returncode else f"not measured: {last}"
        print(tokens or "error", name, found[name], flush=True)
    return found


# ---- in the child ----


def measured(name: str, file: Path, tokens: int, rounds: int) -> dict[str, object]:
    features = array("Q", file.read_bytes())
    length = tokens or UNION - UNION // 4
    if name == "datasketch":
        rounds = 2
        features = features[: max(2, len(features) // length // 20) * length]
    sample = sampler(name, features, length)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    documents, times = len(features) // length, []
    samples: object = None
    for _ in range(rounds):
        began = time.process_time()
        samples = sample()
        times.append(time.process_time() - began)
    if tokens:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        return {"documents/s": round(documents / min(times)), "MB": round(grown / 1024, 1)}
    errors, rows = [], rows_of(samples)
    for one in range(0, documents, 2):
        pairs = [(int(a), int(b)) for a, b in zip(rows[one], rows[one + 1], strict=True)]
        if name == "rdc bins":
            pairs = [pair for pair in pairs if pair != (EMPTY, EMPTY)]
        errors.append(sum(a == b for a, b in pairs) / len(pairs) - 0.5)
    variance = 0.25 / K
    mean = sum(errors) / len(errors)
    return {
        "error": round(sum(error * error for error in errors) / len(errors) / variance, 2),
        "bias": round(mean / (variance / len(errors)) ** 0.5, 1),
    }


def sampler(name: str, features: array[int], length: int) -> Sampler:
    offsets = array("Q", range(0, len(features) + 1, length))
    library, _, way = name.partition(" ")
    if library == "rdc":
        return of_rdc(features, array("q", offsets), way)
    if library == "rensa":
        return of_rensa(features, offsets, way)
    import numpy

    column, ends = (
        numpy.frombuffer(features, dtype=numpy.uint64),
        numpy.frombuffer(offsets, dtype=numpy.uint64),
    )
    if library == "FastSketchLSH":
        from FastSketchLSH import FastSimilaritySketch

        sketch = FastSimilaritySketch(K)
        return lambda: sketch.batch_csr(column, ends, prehashed=True, num_threads=1)
    from datasketch import MinHash

    halves = (column & numpy.uint64(0xFFFFFFFF)).tolist()

    def datasketch() -> object:
        found = []
        for at in range(0, len(halves), length):
            one = MinHash(num_perm=K, hashfunc=int)
            one.update_batch(halves[at : at + length])
            found.append(one.hashvalues)
        return found

    return datasketch


def of_rdc(features: array[int], offsets: array[int], way: str) -> Sampler:
    sys.path.insert(0, str(ROOT))
    from rdc.kernel import minimum_samples, partition_samples

    if way == "functions":
        return lambda: minimum_samples(features, offsets, K, 1)
    return lambda: partition_samples(features, offsets, K, 1, way == "filled")


def of_rensa(features: array[int], offsets: array[int], way: str) -> Sampler:
    from rensa import RMinHash

    if way == "rho":
        return lambda: RMinHash.digest_matrix_from_flat_token_hashes_rho(features, offsets, K, 1)
    return lambda: RMinHash.digest_matrix_from_flat_token_hashes(features, offsets, K, 1)


def rows_of(samples: Any) -> Sequence[Sequence[int]]:
    """Return the samples of each set, whatever the library returns."""
    if isinstance(samples, bytes):
        column = memoryview(samples).cast("I")
        return [column[at : at + K] for at in range(0, len(column), K)]
    return samples.to_rows() if hasattr(samples, "to_rows") else samples  # type: ignore[no-any-return] # rows already


# ---- comparison ----


def pairs_of_sets() -> bytes:
    """Pairs of sets of equal size with a resemblance of one half and a union of UNION features."""
    random, features = Random(5), array("Q")
    alone = UNION // 4
    for _ in range(PAIRS):
        union = [random.getrandbits(64) for _ in range(UNION)]
        features.extend(union[alone:])
        features.extend(union[: UNION - alone])
    return features.tobytes()


def compared() -> dict[str, object]:
    """Pairs a second of rdc's packed samples: a few sets against 32 MB of them, and against 256 KiB."""
    sys.path.insert(0, str(ROOT))
    from rdc.kernel import sample_matches
    from rdc.similarity import Samples, bbit_pack

    bits = 2
    found: dict[str, object] = {}
    for name, sets in (("32 MB", 1_000_000), ("256 KiB", 8_192)):
        row = bbit_pack(Samples(Random(1).randbytes(4 * K * 512), K), bits).data
        packed = row * (sets // 512)
        rows, times = len(packed) // (K * bits // 8), []
        for query in range(40):
            began = time.process_time()
            sample_matches(packed, query, packed, rows, K, bits)
            times.append(time.process_time() - began)
        found[f"pairs/s in {name}"] = round(rows / min(times))
    return found


if __name__ == "__main__":
    main()
