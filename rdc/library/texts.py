"""`rdc.near_duplicates`: which of some texts in memory resemble each other. `rdc.similar_documents` does the
same for files of any size."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rdc.errors import UsageError
from rdc.lean.checks import check_argument, checked_count, checked_number, found_type
from rdc.lean.records import Record, Report
from rdc.library import public

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.similarity.texts import FeatureColumn

SAMPLES, RECALL = 128, 0.999
"""Samples of each text, and the share of pairs at the threshold that they find."""


class NearDuplicate(Record):
    """Two texts that resemble each other, by their positions in the list; `first` is the smaller one."""

    first: int
    second: int
    resemblance: float
    """The shingles in common, divided by those of both together: 1 for equal texts. Exact."""


class NearDuplicates(Report, Record):
    """The result of `rdc.near_duplicates`. Texts are numbers: their positions in the list."""

    pairs: tuple[NearDuplicate, ...]
    """Pairs at or above the threshold, in order. Of equal texts, each is paired with the first one only, and
    only this one with others."""
    groups: tuple[tuple[int, ...], ...]
    """Texts connected by pairs."""
    kept: tuple[int, ...]
    """The first text of each group, and all texts in none: what stays if near-duplicates go."""


@public
def near_duplicates(
    texts: Iterable[str | bytes], threshold: float = 0.8, *, words: int = 5, unit: str = "words"
) -> NearDuplicates:
    """Find the texts that resemble each other: whose shingles, runs of `words` words, are mostly the same.

    Case, punctuation and layout do not matter. Text as bytes is UTF-8. `threshold`: the share of shingles in
    common, 0.1 to 1. `unit`: "chars" for runs of `words` characters, for text without spaces. A text without
    any word resembles only an equal one. Raises TypeError, ValueError and UsageError.

    Pairs are found by samples of the shingles, compared in bands (Broder 1997), with a probability of 99.9 %
    or more, and then compared exactly. Needs about 1 KB and the shingles of each text, 8 bytes a word.

        >>> import rdc
        >>> texts = ["The quick brown fox jumps over the lazy dog.", "another text"]
        >>> found = rdc.near_duplicates([*texts, "the QUICK brown fox jumps over the lazy dog"])
        >>> found.groups, found.kept
        (((0, 2),), (0, 1))
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise TypeError(f"near_duplicates.texts: expected a list of texts, found {found_type(texts)}")
    threshold = checked_number("near_duplicates", "threshold", threshold, 0.1, 1)
    words = checked_count("near_duplicates", "words", words, 1, 256)
    if unit not in ("words", "chars"):
        raise UsageError(f"near_duplicates.unit: expected words or chars, found {unit!r}")
    firsts: dict[str | bytes, int] = {}
    pairs: list[NearDuplicate] = []
    total = 0
    for number, text in enumerate(texts):
        check_argument("near_duplicates", f"texts[{number}]", text, str, bytes)
        first = firsts.setdefault(text, number)
        total = number + 1
        if first != number:
            pairs.append(NearDuplicate(first, number, 1.0))
    numbers = list(firsts.values())
    pairs += [
        NearDuplicate(numbers[pair.first], numbers[pair.second], pair.resemblance)
        for pair in _similar(list(firsts), threshold, words, unit)
    ]
    pairs.sort(key=lambda pair: (pair.first, pair.second))
    from rdc.similarity.banding import clusters

    found = clusters((pair.first, pair.second) for pair in pairs)
    groups = tuple(tuple(group) for group in found)
    left_out = {number for group in groups for number in group[1:]}
    return NearDuplicates(
        tuple(pairs), groups, tuple(number for number in range(total) if number not in left_out)
    )


def _similar(texts: list[str | bytes], threshold: float, words: int, unit: str) -> Iterator[NearDuplicate]:
    """Yield the pairs of different texts."""
    from rdc.similarity.banding import Banding, agreeing_pairs
    from rdc.similarity.samples import one_permutation
    from rdc.similarity.texts import TextColumn, shingles

    column = TextColumn.join(texts)
    sets = shingles(column.text, column.offsets, words, unit="chars" if unit == "chars" else "words")
    samples = one_permutation(sets.features, sets.offsets, SAMPLES)
    plan = Banding.plan(threshold, SAMPLES, RECALL)
    resemblance = _Resemblance(sets)
    for first, second in agreeing_pairs(plan.keys(samples), plan.bands, 1):
        exact = resemblance.of(first, second)
        if exact >= threshold:
            yield NearDuplicate(first, second, exact)


class _Resemblance:
    """The exact resemblance of texts. Pairs of one bucket come together, so their sets are kept a while."""

    def __init__(self, sets: FeatureColumn) -> None:
        self._set = lru_cache(1024)(lambda row: frozenset(sets.of(row)))

    def of(self, first: int, second: int) -> float:
        """0 for texts without features, of which nothing is known."""
        one, other = self._set(first), self._set(second)
        return len(one & other) / len(one | other) if one and other else 0.0
