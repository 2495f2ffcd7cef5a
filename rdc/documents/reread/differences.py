"""Excerpts: where a document differs from the one most like it, in a few words of both."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from difflib import SequenceMatcher

from rdc.documents.parts.open_parts import NamelessFile
from rdc.documents.read.text_batch import StoredBound
from rdc.documents.read.unit_reader import UnitReader
from rdc.documents.reread.wanted import changed_since, texts_of, wanted_files
from rdc.errors import ExitCode, RdcError
from rdc.limits import EXCERPT_BYTES
from rdc.model.similar import TextDifference
from rdc.progress import Problem, Progressed, Reporter, StopSignal, check_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.find.corpus import Corpus
    from rdc.documents.read.file_units import FileUnit, UnitList
    from rdc.documents.reread.wanted import Wanted

WINDOW = 96
"""Words, or characters, of each text that are compared from the first difference on. Comparing takes up to
the cube of it, a tenth of a second, for texts made for that."""

SHOWN = 3
"""Differences of a pair that are shown, at most."""

CONTEXT_CHARACTERS = 40
DIFFERENT_CHARACTERS = 100
"""Longest text around a difference, and longest text that differs."""

_CUT = "\N{HORIZONTAL ELLIPSIS}"


def differences(text: str, other: str, *, by_characters: bool = False) -> tuple[TextDifference, ...]:
    """Return the first places where the words of two texts differ; none if only the spaces between words do.

    `by_characters`: characters are compared in place of words, for scripts without spaces.
    """
    one, two = _split(text, by_characters), _split(other, by_characters)
    first = next((at for at, (left, right) in enumerate(zip(one, two, strict=False)) if left != right), None)
    if first is None:
        first = min(len(one), len(two))
        if len(one) == len(two):
            return ()
    joint = "" if by_characters else " "
    left, right = one[first : first + WINDOW], two[first : first + WINDOW]
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    found: list[TextDifference] = []
    for at, (tag, start, end, other_start, other_end) in enumerate(codes):
        if tag == "equal":
            continue
        # A difference up to the end of the window may only be moved by an earlier one.
        is_last = WINDOW in (end, other_end)
        if found and (is_last or len(found) == SHOWN):
            break
        before = left[codes[at - 1][1] : start] if at else one[max(first - WINDOW, 0) : first]
        after = left[end : codes[at + 1][2]] if at + 1 < len(codes) else []
        found.append(
            TextDifference(
                _last(joint.join(before), CONTEXT_CHARACTERS),
                _first(joint.join(left[start:end]), DIFFERENT_CHARACTERS),
                _first(joint.join(right[other_start:other_end]), DIFFERENT_CHARACTERS),
                _first(joint.join(after), CONTEXT_CHARACTERS),
            )
        )
    return tuple(found)


def _split(text: str, by_characters: bool) -> Sequence[str]:
    return text if by_characters else text.split()


def _first(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + _CUT


def _last(text: str, most: int) -> str:
    return text if len(text) <= most else _CUT + text[1 - most :]


class Excerpts:
    """The starts of the texts of some documents, in a file without a name: the first EXCERPT_BYTES of each.

    A document that cannot be read again has no text, and a note says so.
    """

    def __init__(
        self,
        units: UnitList,
        corpus: Corpus,
        numbers: array[int],
        field: str,
        unit: str,
        reporter: Reporter,
        stop: StopSignal | None,
    ) -> None:
        """`numbers`: documents, increasing. `unit`: that of the shingles. Raises StoppedError, and RdcError
        if TMPDIR cannot be written to."""
        self._by_characters = unit == "chars"
        self._file = NamelessFile()
        self._numbers = array("I")
        self._ends = array("Q")
        done, total = 0, len(numbers)
        for file, wanted in wanted_files(units, corpus, numbers):
            check_stop(stop)
            reporter(Progressed("excerpts", done, total))
            more, missed = self._read(UnitReader(units.files, file, field, StoredBound()), file, wanted, stop)
            done += more
            if missed is not None:
                reporter(Problem(ExitCode.OK, file.paths[0], f"{missed}; there are no excerpts of it"))
        reporter(Progressed("excerpts", total, total))

    def _read(
        self, reader: UnitReader, file: FileUnit, wanted: Iterator[Wanted], stop: StopSignal | None
    ) -> tuple[int, RdcError | None]:
        """Store the texts of a file. Return how many documents it was to have, and why some are missing."""
        count, one = 1, next(wanted, None)
        stored = len(self._numbers)
        for batch in reader.batches():
            check_stop(stop)
            texts = []
            for row, text in texts_of(batch):
                while one is not None and one.row < row:
                    one = next(wanted, None)
                    count += one is not None
                if one is None:
                    break
                if one.row == row and one.is_text(text):
                    texts.append(text[:EXCERPT_BYTES])
                    self._numbers.append(one.number)
                    self._ends.append((self._ends[-1] if self._ends else 0) + len(texts[-1]))
            self._file.append(texts)
        count += sum(1 for _ in wanted)
        complete = len(self._numbers) - stored == count
        return count, None if complete else changed_since(file.paths[0])

    def of(self, number: int, other: int) -> tuple[TextDifference, ...]:
        """Return where a document differs from another one. Raises RdcError."""
        text, like = self._text(number), self._text(other)
        if text is None or like is None:
            return ()
        return differences(text, like, by_characters=self._by_characters)

    def _text(self, number: int) -> str | None:
        at = bisect_left(self._numbers, number)
        if at == len(self._numbers) or self._numbers[at] != number:
            return None
        start = self._ends[at - 1] if at else 0
        return self._file.read(start, self._ends[at] - start).decode(errors="ignore")
