"""BLAKE3-256 digests of many inputs at once, in parallel vector lanes where that is faster than one by
one."""

from __future__ import annotations

from operator import itemgetter
from struct import iter_unpack

from blake3 import blake3

from rdc.kernel import kernel_name, name_inputs, naming_variants
from rdc.kernel import name_parts as name_parts_in_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer


NAME_BYTES = 32

_WORTH = {"avx512": 48 << 10, "avx2": 12 << 10}
"""Mean bytes per input below which a variant beats the package blake3, which fills the lanes from one input.

Measured at 4 KiB: 3.3 times as fast with AVX-512, twice with AVX2. At 16 KiB: 1.4 and 0.9 times. A variant
also takes the interpreter's lock once for all inputs, so two threads are twice as fast. With one call per
input they are not, because a thread that finds the lock taken falls asleep.
"""


_variant = kernel_name() if kernel_name() in naming_variants() else None
"""The variant of the same name as the kernel's. A demand in RDC_KERNEL holds for all of the kernel."""


def name_many(inputs: list[Buffer]) -> bytes:
    """Return the digests of `inputs` one after another, NAME_BYTES each. Threads may call it in parallel."""
    if _variant is not None and len(inputs) > 1:
        total = sum(map(len, inputs))  # type: ignore[arg-type] # Buffer promises no len(), each of ours has it
        if total < _WORTH[_variant] * len(inputs):
            return name_inputs(inputs, _variant)
    # One hash object serves all inputs. That halves the time for which a thread needs the interpreter's lock
    # between inputs. If two threads want the lock at once, one falls asleep for the time of several inputs.
    state, names = blake3(), []
    reset, update, digest = state.reset, state.update, state.digest
    for content in inputs:
        update(content)
        names.append(digest())
        reset()
    return b"".join(names)


def equal_parts(packed: bytes, width: int) -> list[bytes]:
    """Return what lies one after another in `packed`, `width` bytes each, such as digests."""
    return list(map(itemgetter(0), iter_unpack(f"{width}s", packed)))


def name_parts(data: Buffer, sizes: array[int], key: bytes | None = None) -> bytes:
    """Like `name_many`, for parts that lie one after another in `data`. `sizes` (typecode 'Q') has the bytes
    of each part.

    With `key` of 32 bytes the digests are keyed. ValueError if the sizes do not add up to the length of
    `data`.
    """
    if _variant is not None:
        return name_parts_in_lanes(data, sizes, key, _variant)
    with memoryview(data).cast("B") as view:
        if sum(sizes) != len(view):
            raise ValueError("the sizes, 8 bytes each, add up to another length than the data's")
        names, at = [], 0
        for size in sizes:
            part = view[at : at + size]
            names.append((blake3(part) if key is None else blake3(part, key=key)).digest())
            at += size
    return b"".join(names)
