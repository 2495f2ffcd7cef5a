"""Min-wise samples of sets: the smallest images under random functions, for estimates of resemblance.

Broder, "On the resemblance and containment of documents" (1997): two sets have the same smallest image
under a random one-to-one map with the probability of their Jaccard resemblance |A n B| / |A u B|.

Sets are a column in Arrow's layout: `features`, all u64 features one after another, and `offsets`, i64, one
more than there are sets; set s has the features from offsets[s] to offsets[s + 1]. Any buffer serves, such as
array('Q'), a numpy array of uint64 or an Arrow buffer, and nothing is copied. Bytes are packed numbers in the
byte order of the machine; a buffer whose items are of another type is a TypeError. Features are hashes.
Repeated features count once.
"""

from __future__ import annotations

import math
import sys
from array import array
from heapq import nsmallest
from itertools import pairwise
from operator import eq

from rdc.kernel import minimum_samples, partition_samples
from rdc.kernel.constants import mix
from rdc.lean.checks import check_argument, check_count, checked_count, checked_seed, found_type
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.similarity.traits import Estimate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer


# Columns of numbers in any buffer, as arguments of the functions for similarity.
#
# A buffer says what its items are. A column of another type is a TypeError, since its bytes would give
# samples that mean nothing.

SAMPLES_MOST = 1 << 16
"""Samples of a set, and bands or groups of them."""


class Items(Enum):
    """The items of a column: codes of their formats, and a name. All have eight bytes."""

    UNSIGNED = ("QLN", "64-bit unsigned numbers", "array('Q') or a numpy array of uint64")
    SIGNED = ("qln", "64-bit signed numbers", "array('q') or a numpy array of int64")
    DOUBLES = ("d", "64-bit floating-point numbers", "array('d') or a numpy array of float64")


_BYTES = "Bbc"
"""Formats of bytes: those of bytes objects, of Arrow's buffers and of ctypes."""

_OTHER_ORDERS = {"little": ">!", "big": "<"}[sys.byteorder]


def check_column(function: str, name: str, value: Buffer, items: Items) -> None:
    """Raise TypeError unless `value` is a contiguous buffer of such items in the byte order of this machine.

    Bytes are taken as packed items. An array of 8-bit numbers is not bytes.
    """
    expected = f"{function}.{name}: expected {items.value[1]}, such as {items.value[2]}"
    with _view(expected, value) as view:
        order, code = _format_of(view)
        if code in _BYTES and view.itemsize == 1:
            if _is_array(view.obj):
                raise TypeError(f"{expected}, found an array of 8-bit numbers")
            return
        if code not in items.value[0] or view.itemsize != 8:
            raise TypeError(f"{expected}, found {view.format!r} of {view.itemsize} bytes")
        if order in _OTHER_ORDERS:
            raise TypeError(f"{expected}, found another byte order than this machine has ({view.format!r})")


def check_text(function: str, name: str, value: Buffer) -> None:
    """Raise TypeError unless `value` is a contiguous buffer of bytes."""
    expected = f"{function}.{name}: expected bytes"
    with _view(expected, value) as view:
        _, code = _format_of(view)
        if code not in _BYTES or view.itemsize != 1:
            raise TypeError(f"{expected}, found {view.format!r} of {view.itemsize} bytes")


def check_whole(owner: str, data: object, width: int, *, least: int = 0) -> None:
    """Raise TypeError unless `data` is bytes, and ValueError unless they are whole items of `width` bytes, at
    least `least` of them."""
    check_argument(owner, "data", data, bytes)
    if isinstance(data, bytes) and (len(data) % width or len(data) < least * width):
        raise ValueError(
            f"{owner}: expected whole items of {width} bytes, {least} or more, found {len(data)} bytes"
        )


def numbers_of(typecode: str, buffer: Buffer, name: str) -> array[int]:
    """Return the 64-bit numbers of a column. Raises ValueError for an incomplete one."""
    content = bytes(memoryview(buffer).cast("B"))
    if len(content) % 8:
        raise ValueError(f"{name}: {len(content)} bytes are no whole 64-bit numbers")
    return array(typecode, content)


def spans_of(size: int, offsets: Buffer) -> Iterator[tuple[int, int]]:
    """Yield where each row of a column of `size` items begins and ends. Raises ValueError, before the first
    row, for offsets that are no whole numbers, decrease or exceed the column."""
    bounds = numbers_of("q", offsets, "offsets")
    if not bounds or bounds[0] < 0 or bounds[-1] > size:
        raise ValueError(f"offsets: one more than rows, from 0 to at most {size}, are expected")
    for first, stop in pairwise(bounds):
        if stop < first:
            raise ValueError(f"offsets: {stop} follows {first}; they must not decrease")
    yield from pairwise(bounds)


def _view(expected: str, value: Buffer) -> memoryview:
    try:
        view = memoryview(value)
    except (TypeError, BufferError):
        raise TypeError(f"{expected}, found {found_type(value)}") from None
    if not view.c_contiguous:
        view.release()
        raise TypeError(f"{expected}, found a buffer with gaps; copy it first")
    return view


def _format_of(view: memoryview) -> tuple[str, str]:
    """Return the mark of the byte order, '@' without one, and the code of the items."""
    text = view.format or "B"
    return (text[0], text[1:]) if text[0] in "@=<>!" else ("@", text)


def _is_array(owner: object) -> bool:
    """Return whether the owner of a buffer says that its items are numbers of 8 bits, as arrays of Python and
    numpy do."""
    return getattr(owner, "itemsize", 0) == 1


# Draws: random numbers from a seed, and a logarithm, that are the same on every machine and every version of
# Python.
#
# Both need IEEE 754 doubles and only + - * / and square roots of them, in the order that is written here. The
# logarithms of C libraries differ in the last bit.

_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_TERMS = 11
_WORD = (1 << 64) - 1


class Draws:
    """A stream of random numbers: SplitMix64 of a counter (Steele, Lea, Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = mix(seed & _WORD)

    def word(self) -> int:
        """64 random bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        return mix(self._state)

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1, below 2^32; the bias is less than 2^-32."""
        return self.word() * limit >> 64

    def uniform(self) -> float:
        """Return a number between 0 and 1, neither of both."""
        return ((self.word() >> 12) + 0.5) * 2.0**-52

    def normals(self, count: int) -> list[float]:
        """Return random numbers of the standard normal distribution, by Marsaglia's polar method."""
        found: list[float] = []
        while len(found) < count:
            x, y = 2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0
            square = x * x + y * y
            if square < 1.0:
                factor = math.sqrt(-2.0 * logarithm(square) / square)
                found += [x * factor, y * factor]
        return found[:count]


def logarithm(x: float) -> float:
    """Return the natural logarithm of a finite x > 0, with a relative error below 2^-50.

    x = m 2^e with m from the root of 1/2 to the root of 2; ln m = 2 (s + s^3/3 + s^5/5 + ...) with
    s = (m - 1) / (m + 1). Eleven terms leave an error below 2^-55.
    """
    m, e = math.frexp(x)
    if m < _ROOT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / (2 * _TERMS - 1)
    for term in range(_TERMS - 1, 0, -1):
        p = p * z + 1.0 / (2 * term - 1)
    return e * _LN2 + 2.0 * s * p


EMPTY = (1 << 32) - 1
"""The sample of no feature at all."""


class Family:
    """The functions that a seed stands for, as in the kernel."""

    def __init__(self, seed: int) -> None:
        self._key = mix(seed)
        self._factor = mix(seed ^ self._key) | 1

    def rank(self, feature: int) -> int:
        """Return the 64 bits by which features are ordered."""
        return (feature ^ feature >> 32 ^ self._key) * self._factor & _WORD

    def function(self, number: int) -> int:
        """Return the 64 bits of one function."""
        return mix((self._factor + number) & _WORD)


class Samples(Record):
    """Samples of many sets. Those of two sets compare only if `k`, seed and method are the same."""

    data: bytes
    """u32, `k` a set."""
    k: int
    filled: bool = True
    """False: bins without a feature have no sample, and estimates leave them out."""

    def __post_init__(self) -> None:
        check_count("Samples", "k", self.k, 1, SAMPLES_MOST)
        check_whole("Samples", self.data, 4 * self.k)

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.data) // (4 * self.k)

    def of(self, row: int) -> array[int]:
        """Return the samples of one set. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(f"set {row} of {len(self)}")
        return array("I", self.data[4 * self.k * row : 4 * self.k * (row + 1)])

    def estimate(self, one: int, other: int) -> Estimate:
        """Return the estimated resemblance of two sets.

        Without filled bins that is the share of equal samples among the bins in which either set has one (Li,
        Owen, Zhang, "One Permutation Hashing", 2012). Two empty sets resemble each other fully.
        """
        a, b, k = self.of(one), self.of(other), self.k
        equal = sum(map(eq, a, b))
        if not self.filled:
            neither = list(zip(a, b, strict=True)).count((EMPTY, EMPTY))
            equal, k = equal - neither, k - neither
        if not k:
            return Estimate(1.0, 0.0)
        share = (equal + 1) / (k + 2)
        return Estimate(equal / k, math.sqrt(share * (1 - share) / k))


def minhash(features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1) -> Samples:
    """Return samples by `k` independent functions, 1 to 65,536.

    The variance of an estimate is J (1 - J) / k. Time grows with features times `k`: it suits short sets. All
    samples of an empty set are 2^32 - 1. Raises ValueError for a bad column.

    >>> from array import array
    >>> from rdc.similarity import minhash
    >>> samples = minhash(array("Q", [3, 5, 8, 3, 5, 9]), array("q", [0, 3, 6]), k=256)
    >>> 0.3 < samples.estimate(0, 1).jaccard < 0.7
    True
    """
    count, seed = _checked("minhash", features, offsets, k, seed)
    return Samples(minimum_samples(features, offsets, count, seed), count)


def one_permutation(
    features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1, *, fill: bool = True
) -> Samples:
    """Return samples by one product a feature: the smallest feature in each of `k` bins (Li, Owen, Zhang
    2012).

    With `fill`, an empty bin takes the smallest image of all features under a function of its own, marked
    as such. So each sample is equal with probability J exactly, whatever the sizes of both sets, and sets
    of all sizes compare. The mean squared error lies below J (1 - J) / k, as bins without replacement vary
    less. Without `fill` sketches of one column merge by their minima. A power of two for `k` is fastest.
    Raises ValueError for a bad column.

    >>> from array import array
    >>> from rdc.similarity import one_permutation
    >>> samples = one_permutation(array("Q", range(2000)), array("q", [0, 1000, 1000, 2000]))
    >>> len(samples), samples.estimate(0, 0).jaccard, samples.estimate(0, 2).jaccard < 0.1
    (3, 1.0, True)
    """
    count, seed = _checked("one_permutation", features, offsets, k, seed)
    check_argument("one_permutation", "fill", fill, bool)
    return Samples(partition_samples(features, offsets, count, seed, fill), count, fill)


class BottomRanks(Record):
    """The smallest hashes of many sets, as a column of sets."""

    ranks: bytes
    """u64, increasing within a set."""
    offsets: bytes
    """i64, one more than sets."""
    k: int

    def __post_init__(self) -> None:
        check_count("BottomRanks", "k", self.k, 1, SAMPLES_MOST)
        check_whole("BottomRanks", self.ranks, 8)
        check_whole("BottomRanks", self.offsets, 8, least=1)

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.offsets) // 8 - 1

    def of(self, row: int) -> array[int]:
        """Return the ranks of one set. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(f"set {row} of {len(self)}")
        first, stop = array("q", self.offsets[8 * row : 8 * row + 16])
        return array("Q", self.ranks[8 * first : 8 * stop])

    def estimate(self, one: int, other: int) -> Estimate:
        """Return the estimated resemblance of two sets, by the union rule of Broder (1997): of the `k`
        smallest ranks of the union, the share that both sets have. It is exact if the union has at most `k`
        features."""
        a, b = set(self.of(one)), set(self.of(other))
        union = sorted(a | b)[: self.k]
        if not union:
            return Estimate(1.0, 0.0)
        shared = len(a.intersection(b, union))
        if len(union) < self.k:
            return Estimate(shared / len(union), 0.0)
        share = (shared + 1) / (self.k + 2)
        return Estimate(shared / self.k, math.sqrt(share * (1 - share) / self.k))


def bottom_k(features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1) -> BottomRanks:
    """Return the `k` smallest different hashes of each set, or all of them. Raises ValueError for a bad
    column.

    >>> from array import array
    >>> from rdc.similarity import bottom_k
    >>> bottom_k(array("Q", [3, 5, 8, 3, 5, 9]), array("q", [0, 3, 6]), k=8).estimate(0, 1).jaccard
    0.5
    """
    count, seed = _checked("bottom_k", features, offsets, k, seed)
    family, column = Family(seed), numbers_of("Q", features, "features")
    ranks, ends = array("Q"), array("q", [0])
    for first, stop in spans_of(len(column), offsets):
        ranks.extend(nsmallest(count, {family.rank(feature) for feature in column[first:stop]}))
        ends.append(len(ranks))
    return BottomRanks(ranks.tobytes(), ends.tobytes(), count)


def _checked(function: str, features: Buffer, offsets: Buffer, k: object, seed: object) -> tuple[int, int]:
    """Return the number of samples and the seed. Raises TypeError and ValueError."""
    check_column(function, "features", features, Items.UNSIGNED)
    check_column(function, "offsets", offsets, Items.SIGNED)
    return checked_count(function, "k", k, 1, SAMPLES_MOST), checked_seed(function, seed)


# Samples of weighted sets: Ioffe, "Improved Consistent Sampling, Weighted Minhash and L1 Sketching" (ICDM
# 2010).
#
# For each feature x of weight w > 0 and each sample j, a generator seeded by x and j gives five uniform
# numbers u1, u2, v1, v2, beta:
#
#     r = -ln(v1 v2)    c = -ln(u1 u2)    t = floor(ln(w) / r + beta)    a = ln(c) - r (t - beta) - r
#
# The feature with the smallest a wins, and (x, t) is the sample. Two sets have it in common with probability
# (sum of smaller weights) / (sum of larger weights). A function of each j reduces it to 32 bits: the same few
# t recur in many samples, and equal accidents in all of them would spoil estimates from b bits.

_HALF = (1 << 32) - 1


def weighted_minhash(
    features: Buffer, offsets: Buffer, weights: Buffer, k: int = 128, seed: int = 1
) -> Samples:
    """Return `k` samples a set, 1 to 65,536, that two sets share with probability (sum of smaller weights) /
    (sum of larger weights).

    `weights`: a double for each feature, 0 or more. A weight of 0 is as good as no feature; of a repeated
    feature the largest weight counts. The samples are the same on every machine. Time grows with features
    times `k`, some ten microseconds for each. A set without features has samples of 2^32 - 1. Raises
    ValueError for a bad column and for a weight that is negative, infinite or no number, and says which.

    >>> from array import array
    >>> from rdc.similarity import weighted_minhash
    >>> column = array("Q", [3, 5, 3, 5]), array("q", [0, 2, 4])
    >>> samples = weighted_minhash(*column, array("d", [1, 1, 1, 3]), k=512)
    >>> 0.4 < samples.estimate(0, 1).jaccard < 0.6
    True
    """
    function = "weighted_minhash"
    check_column(function, "features", features, Items.UNSIGNED)
    check_column(function, "offsets", offsets, Items.SIGNED)
    check_column(function, "weights", weights, Items.DOUBLES)
    count, seed = checked_count(function, "k", k, 1, SAMPLES_MOST), checked_seed(function, seed)
    column, loads = numbers_of("Q", features, "features"), numbers_of("d", weights, "weights")
    if len(loads) != len(column):
        raise ValueError(f"{len(loads)} weights of {len(column)} features: one a feature is expected")
    family = Family(seed)
    keys = [family.function(j) for j in range(count)]
    samples = array("I")
    for first, stop in spans_of(len(column), offsets):
        for at in range(first, stop):
            if not 0 <= loads[at] < math.inf:
                raise ValueError(f"weight {at} is {loads[at]}: 0 or more, and finite, is expected")
        present = [(column[at], logarithm(loads[at])) for at in range(first, stop) if loads[at]]
        samples.extend([_sample(present, key) for key in keys])
    return Samples(samples.tobytes(), count)


def _sample(present: list[tuple[int, float]], key: int) -> int:
    """Return the sample of features with the logarithms of their weights by one function. If two a's are
    equal, the first wins."""
    least, sample = math.inf, EMPTY
    for feature, weight in present:
        one = mix((feature + key) & _WORD)
        two = mix(one)
        r = -logarithm(_uniform(one >> 32) * _uniform(one & _HALF))
        c = -logarithm(_uniform(two >> 32) * _uniform(two & _HALF))
        beta = _uniform(mix(two) >> 32)
        t = float(math.floor(weight / r + beta))
        a = logarithm(c) - r * (t - beta) - r
        if a < least:
            least, sample = a, mix((one + int(t)) & _WORD) >> 32
    return sample


def _uniform(bits: int) -> float:
    """Return a number between 0 and 1 from 32 random bits, neither of both."""
    return (bits + 0.5) * (1.0 / (1 << 32))
