"""The journal of a two-way sync: the plans of runs that have not ended, in lines with a checksum (STATE.md).

A plan that was not written whole was not begun. Any other damage makes the whole journal unreadable: nobody
knows then which entries an interrupted run has changed.
"""

from __future__ import annotations

from rdc.files.own.record_log import RecordError, encoded, line_of, relative_path_of, time_of, value_of
from rdc.lean.records import Record, replace
from rdc.model.preserved import nearest_time, packed_time
from rdc.uniting.rows import ELSEWHERE, LEFT, NO_STAMP, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.uniting.plan import Intent

JOURNAL_VERSION = 1


class OpenPlan(Record):
    """The steps of an interrupted run."""

    generation: bytes
    """The generation of the ancestor that it began with."""
    intents: Mapping[bytes, Intent]
    renames: frozenset[tuple[bytes, bytes]]
    is_own: bool = False
    """True if each intent has the stamp of the side whose journal it is first, and ELSEWHERE or None second.
    """

    def seen_from(self, side: int) -> OpenPlan:
        """Return the plan with the stamps of the left side first. `side`: whose journal it is from."""
        if not self.is_own or side == LEFT:
            return self
        return replace(self, intents={path: intent[::-1] for path, intent in self.intents.items()})


def plan_lines(plan: OpenPlan) -> list[bytes]:
    """Return the lines of a plan, which read_plans reads."""
    lines = [line_of(["rdc unite", JOURNAL_VERSION, plan.generation.hex()])]
    word = "own" if plan.is_own else "path"
    lines += [
        line_of([word, encoded(path).decode(), *(_stamp_items(side) for side in intent)])
        for path, intent in plan.intents.items()
    ]
    lines += [
        line_of(["rename", encoded(old).decode(), encoded(new).decode()]) for old, new in sorted(plan.renames)
    ]
    lines.append(line_of(["begin"]))
    return lines


def read_plans(data: bytes) -> tuple[list[OpenPlan], bool]:
    """Read a journal: its plans, and whether all of it says what rdc wrote.

    A plan whose writing was cut off was not begun. It has no last line, and its last one may be cut.
    """
    plans: list[OpenPlan] = []
    for block in data.split(b"\n\n"):
        lines = [line for line in block.split(b"\n") if line]
        try:
            plan = _read_plan(lines)
        except (RecordError, ValueError):
            try:
                plan = _read_plan(lines[:-1])
            except (RecordError, ValueError):
                return [], False
            if plan is not None:
                return [], False  # begun, and damaged after that
        if plan is not None:
            plans.append(plan)
    return plans, True


def _read_plan(lines: Sequence[bytes]) -> OpenPlan | None:
    """Return the plan of these lines; None if it was not begun. Raises RecordError, ValueError."""
    if not lines:
        return None
    head = value_of(lines[0])
    if not isinstance(head, list) or len(head) != 3 or head[:2] != ["rdc unite", JOURNAL_VERSION]:
        raise RecordError(f"a journal of version {JOURNAL_VERSION}")
    generation = bytes.fromhex(str(head[2]))
    intents: dict[bytes, Intent] = {}
    own = False
    renames: set[tuple[bytes, bytes]] = set()
    for number, line in enumerate(lines[1:], 2):
        match value_of(line):
            case ["path", path, left, right]:
                intents[relative_path_of(path)] = _stamp_of(left), _stamp_of(right)
            case ["own", path, stamp, other] if other in (None, "elsewhere"):
                own = True
                intents[relative_path_of(path)] = _stamp_of(stamp), _stamp_of(other)
            case ["rename", old, new]:
                renames.add((relative_path_of(old), relative_path_of(new)))
            case ["begin"] if number == len(lines):
                return OpenPlan(generation, intents, frozenset(renames), own)
            case _:
                raise RecordError("a path, a rename or the end of the plan")
    return None


def _stamp_items(stamp: Stamp | None) -> object:
    if stamp is None:
        return None
    if stamp == ELSEWHERE:
        return "elsewhere"
    if stamp == NO_STAMP:
        return []
    return [stamp.size, stamp.mode, nearest_time(stamp.mtime_ns), stamp.inode, nearest_time(stamp.ctime_ns)]


def _stamp_of(items: object) -> Stamp | None:
    if items is None:
        return None
    if items == "elsewhere":
        return ELSEWHERE
    if items == []:
        return NO_STAMP
    if not isinstance(items, list) or len(items) != 5 or not all(type(each) is int for each in items):
        raise RecordError("five numbers of an entry")
    size, mode, mtime, inode, ctime = items
    return Stamp(size, mode, packed_time(time_of(mtime)), inode, packed_time(time_of(ctime)))
