"""Scenarios of two-way sync as values: what three trees have, and what the plan makes of them.

A value is "d" for a directory, "f:CONTENT", "f:CONTENT+x" for an executable file, "f:CONTENT@TIME",
"l:TARGET" for a symlink, and "excluded", "unreadable" or "fifo" for what takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rdc.uniting.plan import Choice, Plan, Remove, Rules, SetFields, Write, make_plan
from rdc.uniting.renames import MakeDirectory, Rename
from rdc.uniting.rows import (
    BARRED,
    DIRECTORY,
    FILE,
    LEFT,
    RIGHT,
    SYMLINK,
    Ancestor,
    Doubt,
    Row,
    Stamp,
    is_below,
    tree_of,
)  # fmt: skip

Values = Mapping[str, str]
BARRED_VALUES = ("excluded", "unreadable", "fifo")


def with_parents(values: Values) -> dict[str, str]:
    made = dict(values)
    for path in values:
        while path := path.rpartition("/")[0]:
            made.setdefault(path, "d")
    return made


def row_of(value: str, inode: int) -> Row:
    if value in BARRED_VALUES:
        return Row(BARRED, value.encode(), 0, 0, 0, None, Stamp(0, 0, 0, 0, 0), Doubt.NONE, False, b"")
    if value == "d":
        kind, content, mode, time = DIRECTORY, "", 0o755, 0
    elif value.startswith("l:"):
        kind, content, mode, time = SYMLINK, value[2:], 0o777, 0
    else:
        text, _, when = value[2:].partition("@")
        content, _, executable = text.partition("+")
        kind, mode, time = FILE, 0o755 if executable else 0o644, int(when or 1)
    return Row(
        kind,
        content.encode(),
        mode,
        time,
        inode,
        None,
        Stamp(len(content), mode, time, inode, 1),
        Doubt.NONE,
        False,
        b"",
    )


def value_of(row: Row) -> str:
    """The value of a row, without its time."""
    if row.kind == BARRED:
        return row.content.decode()
    text = row.content.decode()
    if row.kind == DIRECTORY:
        return "d"
    return f"l:{text}" if row.kind == SYMLINK else f"f:{text}" + "+x" * (row.mode == 0o755)


def views(base: Values, sides: tuple[Values, Values], moves: tuple[Values, Values]) -> tuple[
    dict[bytes, Ancestor], tuple[dict[bytes, Row], dict[bytes, Row]]
]:  # fmt: skip
    """Rows with inode numbers: an entry keeps its number at its path, and takes it along where it moved."""
    numbers = {path: number for number, path in enumerate(sorted(with_parents(base)), 1)}
    rows: tuple[dict[bytes, Row], dict[bytes, Row]] = ({}, {})
    for side in (LEFT, RIGHT):
        came: dict[str, int] = {}
        gone: set[str] = set()
        for old, new in sorted(moves[side].items()):
            for path, number in numbers.items():
                if path == old or path.startswith(old + "/"):
                    later = [far for far in moves[side] if far != old and far.startswith(old + "/")]
                    if not any(path == far or path.startswith(far + "/") for far in later):
                        came[new + path[len(old) :]] = number
                        gone.add(path)
        fresh = 1000 * (side + 1)
        for path, value in sorted(with_parents(sides[side]).items()):
            fresh += 1
            kept = numbers.get(path) if path not in gone else None
            if kept is not None and with_parents(base)[path][0] != value[0]:
                kept = None
            rows[side][path.encode()] = row_of(value, came.get(path, kept or fresh))
    known = {}
    for path, value in with_parents(base).items():
        row = row_of(value, numbers[path])
        mode = row.mode if row.kind != SYMLINK else 0
        time = row.mtime_ns if row.kind == FILE else 0
        known[path.encode()] = Ancestor(row.kind, row.content, mode, time, (row.stamp, row.stamp), None)
    return known, rows


def apply(plan: Plan, rows: tuple[dict[bytes, Row], dict[bytes, Row]]) -> None:
    """Do the steps on the rows."""
    for side, step in plan.steps:
        tree = rows[side]
        if isinstance(step, Rename):
            for path in [each for each in tree if each == step.old or is_below(each, step.old)]:
                tree[step.new + path[len(step.old) :]] = tree.pop(path)
        elif isinstance(step, (MakeDirectory, Write)):
            tree[step.path] = step.row
        elif isinstance(step, SetFields):
            tree[step.path] = tree[step.path]._replace(mode=step.mode, mtime_ns=step.mtime_ns)
        else:
            assert isinstance(step, Remove)
            del tree[step.path]


def outcome(
    base: Values,
    left: Values,
    right: Values,
    moves: tuple[Values, Values] = ({}, {}),
    choose: Callable[[bytes, str, Row, Row], Choice | None] | None = None,
) -> dict[str, object]:
    """What both sides have after the plan, its conflicts, its renames and what it holds."""
    known, rows = views(base, (left, right), moves)
    rules = Rules(choose=choose)
    plan = make_plan(tree_of(known), tree_of(rows[LEFT]), tree_of(rows[RIGHT]), rules)
    apply(plan, rows)
    found: dict[str, object] = {
        "left": {path.decode(): value_of(row) for path, row in sorted(rows[LEFT].items())},
        "right": {path.decode(): value_of(row) for path, row in sorted(rows[RIGHT].items())},
    }
    if plan.conflicts:
        found["conflicts"] = sorted(f"{each.path.decode()} {each.about}" for each in plan.conflicts)
    for name, side in (("left", LEFT), ("right", RIGHT)):
        steps = [step for at, step in plan.steps if at == side and isinstance(step, Rename)]
        if steps:
            found[f"renamed {name}"] = [f"{step.old.decode()} -> {step.new.decode()}" for step in steps]
    if plan.holds:
        found["held"] = sorted({each.path.decode() for each in plan.holds})
    return found
