"""Differences between the rows of number tables, in plain Python: the definition for word_differences.c.

The addresses in a library's tables of relocations and functions ascend, so every row differs. The difference
to the row above is mostly a small number, and often the same one.
"""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["difference_words", "nonzero_bytes", "sum_words"]

WORD = 4


def difference_words(content: WriteableBuffer, ranges: ReadableBuffer, stride: int, /) -> None:
    """Replaces the numbers in `content` by differences, in place.

    `content` is several parts of a file one after another. `ranges` has two native 64-bit numbers per part:
    its offset in the file and its length in bytes. Each four bytes of a part at a multiple of 4 in the file
    are a little-endian number. The number `stride` bytes before it is subtracted modulo 2^32, if that lies in
    the part. ValueError if ranges do not add up, or for a stride that is no positive multiple of 4.
    """
    with memoryview(content).cast("B") as view:
        for start, stop in _parts(ranges, len(view), stride):
            for at in reversed(range(start + stride, stop - WORD + 1, WORD)):
                _add(view, at, -_word(view, at - stride))


def sum_words(content: WriteableBuffer, ranges: ReadableBuffer, stride: int, /) -> None:
    """Undoes difference_words() with the same ranges and stride, for any content."""
    with memoryview(content).cast("B") as view:
        for start, stop in _parts(ranges, len(view), stride):
            for at in range(start + stride, stop - WORD + 1, WORD):
                _add(view, at, _word(view, at - stride))


def nonzero_bytes(content: ReadableBuffer, /) -> int:
    """Returns how many bytes are not 00."""
    plain = bytes(content)
    return len(plain) - plain.count(0)


def _parts(ranges: ReadableBuffer, size: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yields for each part where in the content its first number begins and where the part ends."""
    if stride < WORD or stride % WORD:
        raise ValueError(f"word differences: a stride of {stride} bytes")
    numbers = array("Q")
    with memoryview(ranges) as packed:
        if packed.nbytes % 16 == 0:
            numbers.frombytes(packed.cast("B"))
        if packed.nbytes % 16 or sum(numbers[1::2]) != size:
            raise ValueError(
                f"word differences: an offset and a length for each part, of {size} bytes in all "
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
