"""BLAKE3-256 of many pieces at once: over the lanes of a vector where that is faster than one by one."""

from __future__ import annotations

from blake3 import blake3

from rdc.kernel import kernel_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer

__all__ = ["NAME_BYTES", "forms", "name_many", "name_parts"]

NAME_BYTES = 32

_WORTH = {"avx512": 48 << 10, "avx2": 12 << 10}
"""Mean bytes of a piece below which a form beats the package, which fills the lanes from one piece alone:
at 4 KiB it is 3.3 times as fast with AVX-512, twice with AVX2, at 16 KiB 1.4 times and 0.9 times. It also
needs the interpreter's lock once for all pieces, and so two threads are twice as fast; where each piece is a
call they are not, because a thread that finds the lock taken falls asleep."""


def forms() -> tuple[str, ...]:
    """The forms built in that this CPU can run, fastest first."""
    try:
        from rdc.kernel import _names
    except ImportError:  # a checkout without a compiler
        return ()
    return _names.usable()


def _chosen() -> str | None:
    """The form that goes with the kernel's: what RDC_KERNEL demands holds for all of the kernel."""
    return kernel_name() if kernel_name() in forms() else None


_form = _chosen()


def name_many(pieces: list[Buffer]) -> bytes:
    """The digests of `pieces` one behind another, NAME_BYTES each. Threads may call it side by side."""
    if _form is not None and len(pieces) > 1:
        total = sum(map(len, pieces))  # type: ignore[arg-type] # Buffer promises no len(), each of ours has it
        if total < _WORTH[_form] * len(pieces):
            from rdc.kernel import _names

            return _names.name_pieces(pieces, _form)
    # One hash object for all: this halves the time for which a thread needs the interpreter's lock between
    # pieces. Whenever two threads want it at once, one of them falls asleep: several pieces' time.
    state, names = blake3(), []
    reset, update, digest = state.reset, state.update, state.digest
    for piece in pieces:
        update(piece)
        names.append(digest())
        reset()
    return b"".join(names)


def name_parts(data: Buffer, sizes: array[int], key: bytes | None = None) -> bytes:
    """The same for parts that lie one behind another in `data`: `sizes` (typecode 'Q') has the bytes of each.

    With `key`, 32 bytes, the digests are keyed ones. ValueError where the sizes do not add up to `data`.
    """
    if _form is not None:
        from rdc.kernel import _names

        return _names.name_parts(data, sizes, key, _form)
    with memoryview(data).cast("B") as view:
        if sum(sizes) != len(view):
            raise ValueError("the sizes, 8 bytes each, add up to another length than the data's")
        names, at = [], 0
        for size in sizes:
            part = view[at : at + size]
            names.append((blake3(part) if key is None else blake3(part, key=key)).digest())
            at += size
    return b"".join(names)
