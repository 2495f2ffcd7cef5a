"""Tables of numbers as differences between rows, in plain Python: this file defines the truth, C is fast.

A table of addresses in ascending order, such as a library has of its relocations and functions, is different
in every row; by how much each number is more than the one above is mostly a small number, often the same.
"""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["difference_words", "nonzero_bytes", "sum_words"]

WORD = 4


def difference_words(content: WriteableBuffer, places: ReadableBuffer, stride: int, /) -> None:
    """Makes differences of the numbers in `content`, in place.

    `content` is pieces of a file one behind the other; `places` has two 64-bit numbers, in this machine's
    order, for each: its offset in the file and its length in bytes. Of each four bytes of a piece at a
    multiple of 4 in the file, lowest byte first, those `stride` bytes before are taken, modulo 2^32, if they
    are in the piece too. ValueError where places do not add up, or for a stride that is not a multiple of 4
    from 4 on.
    """
    with memoryview(content).cast("B") as view:
        for start, stop in _pieces(places, len(view), stride):
            for at in reversed(range(start + stride, stop - WORD + 1, WORD)):
                _add(view, at, -_word(view, at - stride))


def sum_words(content: WriteableBuffer, places: ReadableBuffer, stride: int, /) -> None:
    """Undoes difference_words() with the same places and stride, whatever the bytes are."""
    with memoryview(content).cast("B") as view:
        for start, stop in _pieces(places, len(view), stride):
            for at in range(start + stride, stop - WORD + 1, WORD):
                _add(view, at, _word(view, at - stride))


def nonzero_bytes(content: ReadableBuffer, /) -> int:
    """How many bytes are not 00."""
    plain = bytes(content)
    return len(plain) - plain.count(0)


def _pieces(places: ReadableBuffer, size: int, stride: int) -> Iterator[tuple[int, int]]:
    """Where in the content the first number of each piece begins, and where the piece ends."""
    if stride < WORD or stride % WORD:
        raise ValueError(f"word differences: a stride of {stride} bytes")
    numbers = array("Q")
    with memoryview(places) as packed:
        if packed.nbytes % 16 == 0:
            numbers.frombytes(packed.cast("B"))
        if packed.nbytes % 16 or sum(numbers[1::2]) != size:
            raise ValueError(
                f"word differences: an offset and a length for each piece, of {size} bytes in all "
                f"({packed.nbytes} bytes)"
            )
    start = 0
    for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
        yield start + -offset % WORD, start + length
        start += length


def _word(view: memoryview, at: int) -> int:
    return int.from_bytes(view[at : at + WORD], "little")


def _add(view: memoryview, at: int, more: int) -> None:
    view[at : at + WORD] = ((_word(view, at) + more) % (1 << 32)).to_bytes(WORD, "little")
