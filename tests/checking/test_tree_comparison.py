"""How entries of two trees differ, directory by directory, without a session: each entry by its aspects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rdc.checking.records import Aspect, CheckOptions
from rdc.checking.tree_comparison import TreeComparison, compare_links
from rdc.errors import ProtocolError
from rdc.files.root.root import Root
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.model.preserved import EVERYTHING
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Start
from rdc.tree.hard_links import LinkTable
from rdc.tree.manifest import Entry, Manifest
from tests.support.trees.manifests import build, entry


class Compared:
    """Two trees, the remote one `there` and this end's `here`, compared as a check does it."""

    def __init__(
        self,
        place: Path,
        there: list[Entry],
        here: list[Entry],
        options: CheckOptions = CheckOptions(),  # noqa: B008 - frozen
        *,
        far_is_source: bool = True,
        closed: frozenset[bytes] = frozenset(),
    ) -> None:
        root = Root.open(os.fsencode(place))
        self.there = build({one.path: one for one in there})
        self.here = build({one.path: one for one in here})
        start = Start(b"", Kind.DIRECTORY, root.metadata(b""))
        self.tree = TreeComparison(
            root,
            start,
            self.there,
            self.here,
            options,
            EVERYTHING,
            far_is_source=far_is_source,
            is_closed=lambda path, _: path in closed,
        )
        for number, path in enumerate(self.there.directories):
            own = self.here.number(path)
            existing = EMPTY_LISTING if own is None else self.here.listing(own)
            listing = self.there.listing(number)
            self.tree.compare(path, self.there.firsts[number], listing, existing)
        self.tree.finish()

    def row(self, path: bytes) -> int:
        row = self.there.row(path)
        assert row is not None
        return row

    @property
    def found(self) -> dict[bytes, Aspect]:
        """What differs, by path; of entries that this end alone has, too."""
        rows, aspects = zip(*self.tree.noted(), strict=True) if list(self.tree.noted()) else ((), ())
        found = dict(zip(self.there.paths(rows), aspects, strict=True))
        return found | dict.fromkeys(self.here.paths(self.tree.near_rows), self.tree.only_near)


def test_each_kind_of_difference_has_its_aspect(tmp_path: Path) -> None:
    there = [
        entry(b"same"),
        entry(b"size", size=1),
        entry(b"time", mtime_ns=5 * 10**9),
        entry(b"mode", mode=0o600),
        entry(b"owner", uid=7, gid=8),
        entry(b"kind"),
        entry(b"link", target=b"a", kind=Kind.SYMLINK),
        entry(b"special", kind=Kind.SPECIAL),
    ]
    here = [
        entry(b"same"),
        entry(b"size", size=2),
        entry(b"time", mtime_ns=6 * 10**9),
        entry(b"mode", mode=0o644),
        entry(b"owner", uid=1, gid=2),
        entry(b"kind", target=b"x", kind=Kind.SYMLINK),
        entry(b"link", target=b"b", kind=Kind.SYMLINK),
        entry(b"special"),
    ]
    case = Compared(tmp_path, there, here)
    assert case.found == {
        b"size": Aspect.CONTENT,
        b"time": Aspect.TIME,
        b"mode": Aspect.MODE,
        b"owner": Aspect.OWNER | Aspect.GROUP,
        b"kind": Aspect.KIND,
        b"link": Aspect.SYMLINK,
        b"special": Aspect.KIND,
    }
    readable = {b"same", b"size", b"time", b"mode", b"kind", b"link", b"special"}
    to_read = {path for path in sorted(readable) if case.tree.has_content(case.row(path))}
    assert to_read == {b"same", b"time", b"mode"}, "contents of equal size are compared, and no others"
    assert case.tree.is_common(case.row(b"mode"))
    assert not case.tree.is_common(case.row(b"kind"))


@pytest.mark.parametrize("far_is_source", [True, False])
def test_what_one_end_lacks_is_missing_or_extra(far_is_source: bool, tmp_path: Path) -> None:
    there = [entry(b"a"), entry(b"d", kind=Kind.DIRECTORY, mode=0o755), entry(b"d/e"), entry(b"d/f")]
    here = [
        entry(b"a"),
        entry(b"n", kind=Kind.DIRECTORY, mode=0o755),
        entry(b"n/o", kind=Kind.DIRECTORY, mode=0o755),
        entry(b"n/o/p"),
        entry(b"z"),
    ]
    case = Compared(tmp_path, there, here, far_is_source=far_is_source)
    far, near = (Aspect.MISSING, Aspect.EXTRA) if far_is_source else (Aspect.EXTRA, Aspect.MISSING)
    assert case.found == {b"d": far, b"d/e": far, b"d/f": far} | dict.fromkeys(
        (b"n", b"n/o", b"n/o/p", b"z"), near
    )


def test_a_file_in_the_place_of_a_directory_hides_what_is_in_it(tmp_path: Path) -> None:
    case = Compared(tmp_path, [entry(b"a")], [entry(b"a", kind=Kind.DIRECTORY, mode=0o755), entry(b"a/b")])
    assert case.found == {b"a": Aspect.KIND, b"a/b": Aspect.EXTRA}
    assert not case.tree.has_content(case.row(b"a"))


def test_a_directory_that_is_empty_there_is_compared_even_so(tmp_path: Path) -> None:
    there = [entry(b"d", kind=Kind.DIRECTORY, mode=0o755)]
    here = [entry(b"d", kind=Kind.DIRECTORY, mode=0o700), entry(b"d/more")]
    assert Compared(tmp_path, there, here).found == {b"d": Aspect.MODE, b"d/more": Aspect.EXTRA}


def test_times_and_modes_need_not_count(tmp_path: Path) -> None:
    there = [entry(b"a", mtime_ns=5 * 10**9, mode=0o600), entry(b"b", uid=1)]
    here = [entry(b"a"), entry(b"b")]
    found = Compared(tmp_path, there, here, CheckOptions(times=False, modes=False)).found
    assert found == {b"b": Aspect.OWNER}


def test_nothing_is_said_of_a_directory_that_cannot_be_read(tmp_path: Path) -> None:
    there = [entry(b"d", kind=Kind.DIRECTORY, mode=0o755), entry(b"d/e", size=1), entry(b"f")]
    here = [entry(b"d", kind=Kind.DIRECTORY, mode=0o755), entry(b"d/g"), entry(b"f")]
    case = Compared(tmp_path, there, here, closed=frozenset((b"d",)))
    assert case.found == {}
    assert not case.tree.has_content(case.row(b"d/e"))
    assert not case.tree.is_common(case.row(b"d/e"))
    assert case.tree.has_content(case.row(b"f"))


def test_an_entry_that_the_rules_exclude_may_not_be_announced(tmp_path: Path) -> None:
    options = CheckOptions(SyncOptions(rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),)))
    with pytest.raises(ProtocolError):
        Compared(tmp_path, [entry(b"a.o")], [], options)


def test_the_compared_directory_itself_may_differ(tmp_path: Path) -> None:
    case = Compared(tmp_path, [entry(b"a")], [entry(b"a")])
    assert case.tree.top is Aspect.NONE
    tmp_path.chmod(0o700 if (tmp_path.stat().st_mode & 0o777) != 0o700 else 0o755)
    case.tree.compare_top()
    assert case.tree.top.names == ["mode"]


def linked(manifest: Manifest, *groups: list[bytes]) -> LinkTable:
    table = LinkTable()
    rows = {path: row for row, path in enumerate(manifest.paths(range(len(manifest))))}
    pairs = sorted((rows[name], rows[first]) for first, *others in groups for name in others)
    table.extend([file for file, _ in pairs], [first for _, first in pairs])
    return table


def test_links_differ_where_names_share_files_at_one_end_alone(tmp_path: Path) -> None:
    names = [entry(name) for name in (b"a", b"b", b"c", b"d", b"e")]
    case = Compared(tmp_path, [*names, entry(b"gone")], names)
    there = linked(case.there, [b"a", b"b", b"gone"], [b"c", b"d"])
    here = linked(case.here, [b"a", b"b"], [b"d", b"e"])
    compare_links(case.tree, case.there, there, case.here, here)
    assert case.found == {
        **dict.fromkeys((b"c", b"d", b"e"), Aspect.LINKS),
        b"gone": Aspect.MISSING,
    }, "a name that one end lacks makes no difference of the others"
