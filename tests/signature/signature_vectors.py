"""Known inputs and all that their signatures hold, as a file that programs in other languages can check.

An input is parts one after the other, each `length` bytes long: the 64-bit words mix(i), i = `mix` and up,
with the mix of FORMAT.md, little-endian; or `repeat` (hex) over and over; or, with `again`, all parts before
it over and over. `start`, `end` and `blake3` of the whole tell a wrong generator from a wrong signature.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from rdc.chunking import ChunkParams, cuts
from rdc.kernel import kernel_name
from rdc.kernel.constants import mix
from rdc.signature.codec import encode_records, encode_signature
from rdc.signature.tree import sign
from tests.support.project_paths import TOP

__all__ = ["FILE", "Case", "build", "content", "describe_signature"]

FILE = TOP / "fixtures" / "signature_vectors.json"

SECRET = bytes(range(16))
"""Of the short references."""

Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    parts: tuple[Part, ...]
    sizes: tuple[tuple[int, int], ...]
    """(min, max) pairs."""


def _mixed(length: int, first: int = 0) -> Part:
    return {"mix": first, "length": length}


def _repeated(pattern: str, length: int) -> Part:
    return {"repeat": pattern, "length": length}


SMALL, SYNC = (64, 256), (6230, 24920)

CASES = (
    Case("empty", (), (SMALL, SYNC)),
    Case("one byte", (_repeated("00", 1),), (SMALL, SYNC)),
    Case("shorter than min", (_mixed(50),), (SMALL,)),
    Case("exactly max", (_mixed(256),), (SMALL,)),
    Case("one byte more than max", (_mixed(257),), (SMALL,)),
    Case("zeros", (_repeated("00", 20_000),), (SMALL, (256, 2048), SYNC)),
    Case("a period of two", (_repeated("6162", 5_001),), (SMALL,)),
    Case("one level", (_mixed(3_000),), (SMALL, (64, 512), (100, 101))),
    Case("three levels", (_mixed(90_000),), (SMALL,)),
    Case("sync's own parameters", (_mixed(300_000, 1 << 40),), (SYNC,)),
    Case("a hole in the middle", (_mixed(4_000), _repeated("00", 50_000), _mixed(4_000, 500)), (SMALL,)),
    Case("runs of equal nodes", (_mixed(3_000), {"again": True, "length": 60_000}), (SMALL,)),
    Case(
        "text",
        (_repeated("616c6c20776f726b20616e64206e6f20706c61790a", 9_999), _mixed(1_000)),
        ((128, 1024),),
    ),
)


def content(parts: list[Part] | tuple[Part, ...]) -> bytes:
    """The bytes that `parts` describe."""
    data = b""
    for part in parts:
        length = part["length"]
        if "mix" in part:
            first = part["mix"]
            words = (mix(first + i).to_bytes(8, "little") for i in range(length // 8 + 1))
            data += b"".join(words)[:length]
        else:
            pattern = bytes.fromhex(part["repeat"]) if "repeat" in part else data
            data += (pattern * (length // len(pattern) + 1))[:length]
    return data


def describe_signature(data: bytes, min_size: int, max_size: int) -> dict[str, Any]:
    """All that the signature of `data` holds, made with the kernel in use."""
    params = ChunkParams(min_size, max_size)
    tree = sign(data, params)
    levels = [
        {
            "digests": [level.digest(i).hex() for i in range(level.records)],
            "lengths": level.lengths.tolist(),
            "counts": level.counts.tolist(),
        }
        for level in tree.levels
    ]
    top = encode_records(tree.top, range(tree.top.records), SECRET, 8)
    return {
        "min": min_size,
        "max": max_size,
        "parameter id": params.id.hex(),
        "cuts": list(cuts(data, params)),
        "levels": levels,
        "root": tree.root.hex(),
        "traits": tree.traits.hex(),
        "at rest, blake3": blake3(encode_signature(tree)).hexdigest(),
        "top on the wire, width 8": top.hex(),
    }


def build() -> dict[str, Any]:
    """The whole file."""
    inputs = []
    for case in CASES:
        data = content(case.parts)
        inputs.append(
            {
                "name": case.name,
                "parts": list(case.parts),
                "length": len(data),
                "start": data[:24].hex(),
                "end": data[-24:].hex(),
                "blake3": blake3(data).hexdigest(),
                "signatures": [describe_signature(data, *sizes) for sizes in case.sizes],
            }
        )
    about = (__doc__ or "").strip().split("\n\n")[1].replace("\n", " ")
    return {"schema": 1, "about": about, "wire secret": SECRET.hex(), "inputs": inputs}


def main() -> None:
    """Print the file. Only the kernel that defines the truth may make it."""
    if kernel_name() != "c":
        sys.exit("vectors are made with RDC_KERNEL=c: run scripts/make_vectors")
    print(json.dumps(build(), indent=1))


if __name__ == "__main__":
    main()
