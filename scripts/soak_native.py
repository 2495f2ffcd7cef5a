"""Fuzzes the C modules through Python, under AddressSanitizer and UndefinedBehaviorSanitizer.

scripts/soak native [--seconds=600] [--seed=N] [files | faults | kernel]...    all of them without a name

files: calls rdc/files with random arguments over a tree that changes meanwhile; faults: the same, and one
system call or allocation in 30 fails; kernel: runs the tests of rdc/kernel and rdc/files with new seeds.
Each of them takes the seconds. Prints the first finding and exits with 1.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.support.kernel.sanitized import FAULTS, Sanitized

ROUNDS = 1 << 40
PARTS = ("files", "faults", "kernel")
TESTS = [
    f"tests/kernel/test_{name}.py"
    for name in (
        *("blocks", "equal", "gaps", "masking", "names", "nodes", "paths", "recipe", "roots", "rows"),
        *("counts", "tables", "trait_index", "traits", "varints", "words", "x86_branches"),
    )
] + [
    f"tests/files/{name}.py"
    for name in (
        *("bulk/test_read_many", "bulk/test_open_many", "bulk/test_small_files"),
        *("root/test_lister", "root/test_list_beneath", "root/test_read_ranges"),
        *("facts/test_directory_xattrs", "facts/test_directory_xattrs_refused"),
    )
]


def files(place: Path, seconds: float, seed: int, faults: int) -> int:
    built = Sanitized(place, ["rdc.files"], FAULTS if faults else ())
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        # A new process every minute, so that leftovers in memory do not hide a finding for long.
        words = ("-m", "tests.support.kernel.fuzzed_files", str(seed), str(min(60, left)), str(ROUNDS))
        code, out = built.run(*words, faults=faults, seed=seed)
        print(out, end="", flush=True)
        if code:
            print(f"exit code {code} of: {' '.join(words)} with RDC_FAULTS={faults} RDC_FAULTS_SEED={seed}")
            return 1
        seed += 1
    return 0


def kernel(place: Path, seconds: float, seed: int) -> int:
    built = Sanitized(place, ["rdc.kernel", "rdc.files"])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for test in TESTS:
            seeded = (f"--hypothesis-seed={seed}", "--all-needs", test)
            words = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *seeded)
            code, out = built.run(*words)
            if code:
                print(out, f"exit code {code} of: {' '.join(words)}", sep="\n")
                return 1
            print(f"{test}, seed {seed}: passed", flush=True)
            if time.monotonic() > end:
                break
        seed += 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="rdc-native-") as folder:
            place = Path(folder)
            if part == "kernel":
                code = kernel(place, given.seconds, given.seed)
            else:
                code = files(place, given.seconds, given.seed, 30 if part == "faults" else 0)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
