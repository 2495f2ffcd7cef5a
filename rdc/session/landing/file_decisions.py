"""The decision for each file that waits for its content, in one byte each."""

from __future__ import annotations

from array import array

from rdc.kernel import put_rows, take_rows
from rdc.plan.compare import Change, Decision, Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIFFERS", "DIFFERS_IN_ACCESS", "FileDecisions"]

DIFFERENCES = tuple(map(Difference, range(1 << len(Difference))))
"""Every set of differences, indexed by its bits."""

_ACCESS = int(Difference.PERMISSIONS | Difference.OWNER | Difference.GROUP)

DIFFERS = bytes(code > 0 and (code - 1) % len(DIFFERENCES) > 0 for code in range(256))
"""For each code byte, 1 if it has any difference."""

DIFFERS_IN_ACCESS = bytes(code > 0 and ((code - 1) & _ACCESS) > 0 for code in range(256))
"""For each code byte, 1 if it has a difference in who may use the file."""


class FileDecisions:
    """Stores the decision for each file until the file is committed or found equal.

    If every file of a tree was touched, this holds as many decisions as the tree has entries.
    """

    _CHANGES = (Change.CONTENT, Change.CHECK, Change.REPLACE)

    def __init__(self) -> None:
        # 0: no decision. Otherwise 1 + the bits of the difference + len(DIFFERENCES) * index of the change.
        self._codes = bytearray()
        self._decoded: dict[int, Decision] = {}

    def put(self, file: int, change: Change, difference: Difference) -> None:
        """Stores the decision for one file."""
        self.put_many((file,), change, difference)

    def put_many(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """Stores one decision for each of these files, which increase."""
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        code = 1 + int(difference) + len(DIFFERENCES) * self._CHANGES.index(change)
        for file in files:
            self._codes[file] = code

    def has(self, file: int) -> bool:
        """Whether a decision is stored for this file."""
        return file < len(self._codes) and self._codes[file] != 0

    def has_any(self, first: int, stop: int) -> bool:
        """Whether a decision is stored for any file from `first` to before `stop`."""
        return any(self._codes[first:stop])

    def pop(self, file: int) -> Decision | None:
        """Removes and returns the decision for a file; None if there is none."""
        if not self.has(file):
            return None
        code, self._codes[file] = self._codes[file], 0
        return self.decision(code)

    def take(self, files: Sequence[int]) -> bytes:
        """Like `pop` for many files in increasing order.

        Returns one code byte per file (0: none); `decision` decodes it.
        """
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        rows = array("Q", files)
        codes = take_rows(self._codes, 1, rows)
        put_rows(self._codes, 1, rows, bytes(len(rows)))
        return codes

    def decision(self, code: int) -> Decision:
        """Decodes a code byte other than 0."""
        decoded = self._decoded.get(code)
        if decoded is None:
            change, difference = divmod(code - 1, len(DIFFERENCES))
            decoded = self._decoded[code] = Decision(self._CHANGES[change], -1, -1, DIFFERENCES[difference])
        return decoded
