"""What a deletion leaves, against the rules; that a dry run tells the same; no depth is too deep for it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.files.root.root import Root
from rdc.model.entries import Kind
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Event, ItemChanged, Problem
from rdc.session.destination.deletion import Deletion
from rdc.session.runtime.commands import EventRelay
from rdc.session.transfer.commits import Extraneous
from rdc.tree.filters import FilterList
from tests.support.share import examples
from tests.support.trees.tree_strategies import plain_trees
from tests.support.trees.trees import Directory, Tree, parent_of, read_tree, write_tree

SLOW = settings(deadline=None, max_examples=examples(60))


class Deleting:
    """Removes all that a tree has, entry by entry from the top."""

    def __init__(self, top: Path, rules: tuple[FilterRule, ...], *, limit: int | None, dry: bool) -> None:
        self.events: list[Event] = []
        root = Root.open(os.fsencode(top))
        events = EventRelay(self.events.append)
        self.deletion = Deletion(root, FilterList(rules), events, limit=limit, dry=dry)
        self.gone = True
        for name in sorted(os.listdir(os.fsencode(top))):
            kind = root.kind(name)
            assert kind is not None
            self.gone &= self.deletion.remove((Extraneous(name, kind, root.identity(name)),))
        self.deletion.finish()
        root.close()

    @property
    def told(self) -> list[bytes]:
        return [event.path_bytes.rstrip(b"/") for event in self.events if isinstance(event, ItemChanged)]


def staying(found: Tree, rules: tuple[FilterRule, ...]) -> set[bytes]:
    """What the rules exclude, what is in it, and what holds one of these."""
    filters, stay = FilterList(rules), set()
    for path, node in sorted(found.items()):
        inside = parent_of(path) in stay and isinstance(found[parent_of(path)], Directory)
        if path and (inside or filters.excluded(path, isinstance(node, Directory))):
            stay.add(path)
    for path in sorted(stay, reverse=True):
        above = parent_of(path)
        while above and above not in stay:
            stay.add(above)
            above = parent_of(above)
    return stay


@SLOW
@given(st.data())
def test_all_goes_but_what_is_excluded_and_what_holds_it(data: st.DataObject) -> None:
    found = data.draw(plain_trees())
    names = sorted({path.rpartition(b"/")[2] for path in found} - {b""})
    excluded = data.draw(st.sets(st.sampled_from(names), max_size=2)) if names else set()
    rules = tuple(FilterRule(RuleAction.EXCLUDE, name) for name in sorted(excluded))
    limit = data.draw(st.none() | st.integers(0, len(found)))
    stay = staying(found, rules)
    goes = found.keys() - stay - {b""}
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        place = write_tree(Path(top, "tree"), found)
        before = read_tree(place).keys()
        rehearsed = Deleting(place, rules, limit=limit, dry=True)
        assert read_tree(place).keys() == before
        real = Deleting(place, rules, limit=limit, dry=False)
        left = read_tree(place).keys()
    assert before - left == set(real.told)
    assert real.told == rehearsed.told
    assert len(real.told) == len(set(real.told)) == real.deletion.deleted
    assert set(real.told) <= goes
    assert real.deletion.deleted == (len(goes) if limit is None else min(limit, len(goes)))
    assert real.gone == rehearsed.gone == (left == {b""})
    # What is in a directory goes before it.
    order = {path: at for at, path in enumerate(real.told)}
    assert all(order[path] < order.get(parent_of(path), len(order)) for path in real.told)
    problems = [event for event in real.events if isinstance(event, Problem)]
    stopped = limit is not None and limit < len(goes)
    assert [problem.code for problem in problems] == [ExitCode.MAX_DELETE] * stopped


def test_what_would_have_moved_away_counts_as_gone_in_a_dry_run(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("moved", "other"):
        (tmp_path / "d" / name).write_bytes(b"")
    events: list[Event] = []
    root = Root.open(os.fsencode(tmp_path))
    deletion = Deletion(root, FilterList(()), EventRelay(events.append), limit=None, dry=True)
    deletion.spare(b"d/moved")
    assert deletion.remove((Extraneous(b"d", Kind.DIRECTORY, root.identity(b"d")),))
    assert [event.path_bytes for event in events if isinstance(event, ItemChanged)] == [b"d/other", b"d/"]
    assert deletion.deleted == 2
    root.close()


def test_a_tree_deeper_than_calls_may_be(tmp_path: Path) -> None:
    depth = sys.getrecursionlimit() + 100
    path = os.fsencode(tmp_path) + b"/d"
    for _ in range(depth):
        os.mkdir(path)
        path += b"/d"
    root = Root.open(os.fsencode(tmp_path))
    deletion = Deletion(root, FilterList(()), EventRelay(None), limit=None, dry=False)
    assert deletion.remove((Extraneous(b"d", Kind.DIRECTORY, root.identity(b"d")),))
    assert deletion.deleted == depth
    assert os.listdir(tmp_path) == []
    root.close()
