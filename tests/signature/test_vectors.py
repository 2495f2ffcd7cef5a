"""Known signatures. They must not change without a new format version, and all kernels must agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from blake3 import blake3

from rdc.kernel import _kernel
from rdc.kernel.cut.reference import Cutter
from tests.signature.signature_vectors import FILE, build, content, describe_signature

VECTORS: dict[str, Any] = json.loads(FILE.read_text())
INPUTS: list[dict[str, Any]] = VECTORS["inputs"]

NODE_KEY = blake3(b"rdc 1 signature node").digest()
ROOT_KEY = blake3(b"rdc 1 signature root").digest()


@pytest.mark.parametrize("entry", INPUTS, ids=lambda entry: entry["name"])
def test_the_kernel_in_use(entry: dict[str, Any]) -> None:
    data = content(entry["parts"])
    assert (len(data), data[:24].hex(), data[-24:].hex()) == (entry["length"], entry["start"], entry["end"])
    assert blake3(data).hexdigest() == entry["blake3"], "the generator, not the signature, differs"
    for expected in entry["signatures"]:
        assert describe_signature(data, expected["min"], expected["max"]) == expected


@pytest.mark.parametrize("kernel", _kernel.usable())
def test_every_kernel(kernel: str) -> None:
    """Runs in a separate process, since the kernel is chosen at import."""
    names = "from tests.signature.signature_vectors import *"
    code = f"import json; {names}; assert build() == json.loads(FILE.read_text())"
    subprocess.run([sys.executable, "-c", code], env=os.environ | {"RDC_KERNEL": kernel}, check=True)


@pytest.mark.parametrize("entry", INPUTS, ids=lambda entry: entry["name"])
def test_by_the_definition_of_a_cut(entry: dict[str, Any]) -> None:
    data = content(entry["parts"])
    for found in entry["signatures"]:
        cutter = Cutter(found["min"], found["max"])
        assert cutter.feed(data) + cutter.finish() == found["cuts"]
        assert cutter.traits().hex() == found["traits"]


def columns(key: bytes, head: bytes, level: dict[str, Any]) -> str:
    hasher = blake3(head, key=key)
    hasher.update(b"".join(map(bytes.fromhex, level["digests"])))
    for column in ("lengths", "counts"):
        hasher.update(b"".join(number.to_bytes(8, "little") for number in level[column]))
    return hasher.hexdigest()


def groups(level: dict[str, Any]) -> list[int]:
    """Ends of the nodes over a level's records, exactly as FORMAT.md defines them."""
    ranks = [int(digest[:16], 16) for digest in level["digests"]]
    ends, last = [], 0
    while len(ranks) - last > 26:
        last = min(range(last + 7, last + 27), key=lambda i: (ranks[i - 1], -i))
        ends.append(last)
    return [*ends, len(ranks)]


@pytest.mark.parametrize("entry", INPUTS, ids=lambda entry: entry["name"])
def test_by_the_letter_of_the_format(entry: dict[str, Any]) -> None:
    """Everything computed from the cuts without rdc's code, as a reader in another language would do."""
    data = content(entry["parts"])
    for found in entry["signatures"]:
        items, begin = [], 0
        for end in found["cuts"]:
            items.append((blake3(data[begin:end]).hexdigest(), end - begin))
            begin = end
        for number, level in enumerate(found["levels"]):
            runs: list[list[Any]] = []
            for digest, length in items:
                if runs and runs[-1][0] == digest:
                    runs[-1][2] += 1
                else:
                    runs.append([digest, length, 1])
            assert level == {
                "digests": [run[0] for run in runs],
                "lengths": [run[1] for run in runs],
                "counts": [run[2] for run in runs],
            }
            if number == len(found["levels"]) - 1:
                assert len(runs) <= 26
                break
            items, begin = [], 0
            for end in groups(level):
                node = {name: values[begin:end] for name, values in level.items()}
                length = sum(map(int.__mul__, node["lengths"], node["counts"]))
                items.append((columns(NODE_KEY, bytes([number]), node), length))
                begin = end
        head = bytes.fromhex(found["parameter id"]) + len(data).to_bytes(8, "little")
        height = len(found["levels"]) - 1
        assert columns(ROOT_KEY, head + bytes([height]), found["levels"][-1]) == found["root"]


def test_the_file_is_what_the_script_makes() -> None:
    assert build() == VECTORS
    levels = [len(found["levels"]) for entry in INPUTS for found in entry["signatures"]]
    assert max(levels) >= 3
    counts = [
        max(level["counts"], default=0) for e in INPUTS for f in e["signatures"] for level in f["levels"][1:]
    ]
    assert max(counts) > 1, "no vector has a run of equal nodes"
