"""The C modules of rdc.files under sanitizers: a sample of scripts/soak_native.py, which would notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kernel.sanitized import FAULTS, FOUND, Sanitized

ROUNDS = 400


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    return Sanitized(tmp_path_factory.mktemp("sanitized"), ["rdc.files"], FAULTS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("faults", [0, 30])
def test_any_arguments_over_a_tree_that_changes(built: Sanitized, faults: int) -> None:
    for seed in (1, 2):
        words = ("-m", "tests.support.kernel.fuzzed_files", str(seed), "1e9", str(ROUNDS))
        code, out = built.run(*words, faults=faults, seed=seed)
        # A warning before it tells of an allocation that was refused.
        assert (code, out.splitlines()[-1]) == (0, f"{ROUNDS} rounds from seed {seed}"), out


READ = """
import os, sys
from array import array
from rdc.files import _files
open("file", "wb").write(bytes(4096))
with open("file", "rb") as file:
    print(_files.read_ranges(file.fileno(), array("Q", [int(word) for word in sys.argv[1:]])))
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range left = range_at(rows, row);", "range left = range_at(rows, row + 1);"),
        ("range left = range_at(rows, row);", "range left = range_at(rows, row); to[left.length + 1] = 0;"),
        ("range left = range_at(rows, row);", "range left = range_at(rows, row); fd += 2147483647;"),
    ],
    ids=["reads past an end", "writes past an end", "overflows"],
)
def test_what_a_sanitizer_finds_ends_the_process(tmp_path: Path, old: str, new: str) -> None:
    built = Sanitized(tmp_path, ["rdc.files"], changes={old: new})
    code, out = built.run("-c", READ, "0", "4096")
    assert code == FOUND
    assert "AddressSanitizer" in out or "runtime error" in out


def test_faults_are_made(built: Sanitized) -> None:
    """Where each call fails, nothing can be read; where none does, it can."""
    assert built.run("-c", READ, "0", "2") == (0, "b'\\x00\\x00'\n")
    assert built.run("-c", READ, "0", "2", faults=1) == (0, "None\n")
