"""Measures which near-duplicates of real documents are found: rdc beside rensa and datasketch.

Metrics: recall is the share of pairs whose 5-word shingles resemble each other by the threshold or more that
a library reports; precision is the share of reported pairs that do. The truth is exact: all pairs that share
one of their rarest shingles are compared. Documents with equal sets of shingles count once, and those of
fewer than 20 shingles not at all.
Settings: 128 samples of the same shingles. rdc: bands planned for .99 of the pairs at the threshold, then the
estimate of filled bins; `rdc similar --text` compares the shingles of these candidates in place of that, here
without its limit of neighbours. datasketch: MinHashLSH(threshold), then its estimate. rensa: RMinHashLSH with
64, 32 and 16 bands, then its estimate. Each reports a pair whose estimate is the threshold or more.
Command: .venv/bin/python -m bench.documents DOCUMENTS.jsonl --peers PEERS/bin/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
THRESHOLDS = (0.5, 0.7, 0.9)
K = 128
Pairs = set[tuple[int, int]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=Path)
    parser.add_argument("--peers", help="the Python that has the other libraries")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(peer(options.child, read_sets(options.documents))))
        return
    sys.path.insert(0, str(ROOT))
    sets = shingled(options.documents)
    truth = exact_pairs(sets)
    print(
        f"{len(sets)} different documents, {sum(map(len, sets))} shingles, {len(truth)} pairs of .5 or more"
    )
    found = {"rdc": of_rdc(sets), "rdc similar --text": of_rdc(sets, compared=True)}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([list(one) for one in sets], file)
        file.flush()
        for name in ("rensa", "datasketch") if options.peers else ():
            command = [options.peers, __file__, file.name, "--child", name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name}: not measured: {done.stderr.strip().rpartition(chr(10))[2]}")
                continue
            found[name] = [{(a, b) for a, b in pairs} for pairs in json.loads(done.stdout)]
    for name, rows in found.items():
        for threshold, pairs in zip(THRESHOLDS, rows, strict=True):
            wanted = {pair for pair, jaccard in truth.items() if jaccard >= threshold}
            right = len(pairs & wanted)
            recall, precision = right / max(1, len(wanted)), right / max(1, len(pairs))
            print(
                f"{name} at {threshold}: recall {recall:.3f}, precision {precision:.3f}, {len(wanted)} pairs"
            )


def shingled(path: Path) -> list[array[int]]:
    """Return the different sets of shingles, each in increasing order."""
    from rdc.similarity import TextColumn, html_text, shingles

    sets: set[bytes] = set()
    with path.open() as file:
        lines = [json.loads(line) for line in file]
    for at in range(0, len(lines), 1000):
        column = TextColumn.join([line["text"] for line in lines[at : at + 1000]])
        plain = html_text(column.text, column.offsets)
        features = shingles(plain.text, plain.offsets)
        sets.update(array("Q", sorted(set(features.of(row)))).tobytes() for row in range(len(features)))
    return [array("Q", one) for one in sorted(sets) if len(one) >= 8 * 20]


def exact_pairs(sets: list[array[int]]) -> dict[tuple[int, int], float]:
    """All pairs with a resemblance of .5 or more. Such a pair shares one of the rarest half of either's
    features, so only these are looked up."""
    counts = Counter(feature for one in sets for feature in one)
    rows: dict[int, list[int]] = {}
    truth: dict[tuple[int, int], float] = {}
    known = [set(one) for one in sets]
    for number, one in enumerate(sets):
        rarest = sorted(one, key=lambda feature: (counts[feature], feature))[: len(one) // 2 + 1]
        near = {other for feature in rarest for other in rows.get(feature, ())}
        for other in near:
            if 2 * min(len(one), len(sets[other])) < max(len(one), len(sets[other])):
                continue
            shared = len(known[number] & known[other])
            jaccard = shared / (len(one) + len(sets[other]) - shared)
            if jaccard >= 0.5:
                truth[other, number] = jaccard
        for feature in rarest:
            rows.setdefault(feature, []).append(number)
    return truth


def of_rdc(sets: list[array[int]], *, compared: bool = False) -> list[Pairs]:
    """Return the pairs whose estimate is high enough, or `compared` the pairs whose shingles are."""
    from rdc.similarity import Banding, agreeing_pairs, one_permutation

    offsets, column = array("q", [0]), array("Q")
    for one in sets:
        column.extend(one)
        offsets.append(len(column))
    samples = one_permutation(column, offsets, K)
    found: list[Pairs] = []
    for threshold in THRESHOLDS:
        plan = Banding.plan(threshold, K)
        pairs = [(one, other) for one, other in agreeing_pairs(plan.keys(samples), plan.bands, 1)]
        if compared:
            found.append(alike(pairs, column, offsets, threshold))
        else:
            found.append({pair for pair in pairs if samples.estimate(*pair).jaccard >= threshold})
    return found


def alike(pairs: list[tuple[int, int]], column: array[int], offsets: array[int], threshold: float) -> Pairs:
    """Return the pairs that resemble each other by the upper halves of their shingles, as documents are
    compared."""
    from rdc.kernel import set_resemblances, upper_halves

    numbers = array("I", [number for pair in pairs for number in pair])
    found = set_resemblances(bytearray(upper_halves(column)), offsets, numbers, threshold)
    return set(compress(pairs, array("d", found)))


# ---- in the child ----


def read_sets(path: Path) -> list[list[int]]:
    return json.loads(path.read_text())  # type: ignore[no-any-return] # the parent wrote such lists


def peer(name: str, sets: list[list[int]]) -> list[list[tuple[int, int]]]:
    return [sorted(set(reported(name, sets, threshold))) for threshold in THRESHOLDS]


def reported(name: str, sets: list[list[int]], threshold: float) -> Iterator[tuple[int, int]]:
    index: Any
    if name == "datasketch":
        from datasketch import MinHash, MinHashLSH

        made: list[Any] = []
        index = MinHashLSH(threshold=threshold, num_perm=K)
        for number, one in enumerate(sets):
            sketch = MinHash(num_perm=K, hashfunc=lambda feature: feature & 0xFFFFFFFF)
            sketch.update_batch(one)
            made.append(sketch)
            index.insert(number, sketch)
    else:
        from rensa import RMinHash, RMinHashLSH

        made = []
        index = RMinHashLSH(threshold, K, {0.5: 64, 0.7: 32, 0.9: 16}[threshold])
        for number, one in enumerate(sets):
            sketch = RMinHash(K, 1)
            sketch.update([feature.to_bytes(8, "little") for feature in one])
            made.append(sketch)
            index.insert(number, sketch)
    for number, sketch in enumerate(made):
        for other in index.query(sketch):
            if other < number and sketch.jaccard(made[other]) >= threshold:
                yield other, number


if __name__ == "__main__":
    main()
