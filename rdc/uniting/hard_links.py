"""The hard links of a plan: it decides which names are one file once the run is done, and replaces
steps by those that make it so. Pure but for two questions about a file system.

Loaded by runs that were asked for them. Contents, permissions, times and attributes are decided before, path
by path, as without hard links. Only names that are equal in all of that become one file (rdc.uniting.ties
decides which). So no name is given another content by a link, and none waits for one.
"""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.lean.records import Record
from rdc.progress import Problem
from rdc.uniting.plan import Conflict, Link, Part, Remove, SetAttributes, Write
from rdc.uniting.renames import CopyHere, Rename
from rdc.uniting.rows import DIGEST_BYTES, FILE, LEFT, RIGHT, Ancestor, Row
from rdc.uniting.ties import Tied, Union, groups_of, merged, moved, parts, refined, retied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping, Sequence

    from rdc.files.root.root import Root
    from rdc.uniting.plan import Merge, Rules, Settled, Step
    from rdc.uniting.rows import Node
    from rdc.uniting.ties import Groups, Ties


class Links(Record):
    """The names that share a file, by their paths as they were listed."""

    base: Ties
    sides: tuple[Ties, Ties]

    @property
    def names(self) -> set[bytes]:
        """All of these names."""
        return self.base.keys() | self.sides[LEFT].keys() | self.sides[RIGHT].keys()

    def tie(self, merge: Merge, base: Node, rules: Rules) -> None:
        """Add what a merge has to do about hard links, and take from it what links do instead."""
        _Tying(merge, base, rules, self).run()

    def retied(self, side: int) -> frozenset[bytes]:
        """Return the names whose file has other names at a side than in the ancestor."""
        return retied(self.base, self.sides[side])


def share_digests(tied: Tied, settled: Mapping[bytes, Settled], digests: dict[bytes, bytes]) -> None:
    """Note the content of one name of a file for all of them. `digests`: those that the run has found."""
    for group in tied.groups:
        known = [digests.get(path, settled[path].content) for path in group]
        found = next((content for content in known if len(content) == DIGEST_BYTES), None)
        if found is not None:
            digests.update(dict.fromkeys(group, found))


def files_in_play(steps: Sequence[Step | SetAttributes], ties: Ties, view: Node) -> dict[bytes, Row]:
    """Return the names of files of one side that its steps give or take names, or change, each as it was
    listed, by paths after the renames."""
    touched = {step.path for step in steps if not isinstance(step, (Rename, CopyHere))}
    touched.update(step.source for step in steps if isinstance(step, Link))
    now = moved(ties, view)
    numbers = {now[path] for path in touched if path in now}
    return _file_rows(view, [path for path, number in now.items() if number in numbers or path in touched])


def can_have_links(root: Root) -> bool:
    """Return whether the file system of a root has hard links that a run can tell."""
    return root.storage.facts.hard_links and root.stable.inode


def no_links_notice() -> Problem:
    """Return the notice that hard links take no part though they were asked for."""
    return Problem(ExitCode.OK, b"", "hard links take no part: the file system of one side has none")


def _file_rows(view: Node, paths: Iterable[bytes]) -> dict[bytes, Row]:
    found: dict[bytes, Row] = {}
    for path in paths:
        node = view.find(path)
        if node is not None and isinstance(node.row, Row) and node.row.kind == FILE:
            found[path] = node.row
    return found


class _Tying:
    """The hard links of one plan."""

    def __init__(self, merge: Merge, base: Node, rules: Rules, links: Links) -> None:
        self.merge, views = merge, merge.views
        self._kept = rules.kept
        self._choose = rules.choose or (lambda *_: None)
        self.has_sets = rules.attributes
        ties = moved(links.base, base)
        self._base = {path: number for path, number in ties.items() if base.find(path) is not None}
        sides = tuple(moved(links.sides[side], views[side]) for side in (LEFT, RIGHT))
        names = self._base.keys() | sides[LEFT].keys() | sides[RIGHT].keys()
        self.rows = _file_rows(views[LEFT], names), _file_rows(views[RIGHT], names)
        self.sides = tuple(
            {path: number for path, number in sides[side].items() if path in self.rows[side]}
            for side in (LEFT, RIGHT)
        )
        self._tree = base
        torn = {conflict.path for conflict in merge.conflicts}
        self._settled: dict[bytes, Settled] = {}
        for path in names:
            settled = merge.settled.get(path)
            if settled is not None and settled.kind == FILE and path not in torn:
                self._settled[path] = settled
        self.writes = tuple(
            {step.path: step for step in merge.writes[side] if isinstance(step, Write)}
            for side in (LEFT, RIGHT)
        )
        self.fields = tuple({step.path: step for step in merge.fields[side]} for side in (LEFT, RIGHT))
        self.sets = tuple({step.path: step for step in merge.attributes[side]} for side in (LEFT, RIGHT))
        self.open: dict[bytes, list[bytes]] = {}
        """The part of each name of a part in conflict."""

    def run(self) -> None:
        """Decide all, and change the merge."""
        renamed = [{step.old for step in self.merge.renames[side]} for side in (LEFT, RIGHT)]
        here = [self.rows[side].keys() - renamed[side] for side in (LEFT, RIGHT)]
        both = {path for path in self._settled if path in here[LEFT] and path in here[RIGHT]}
        self._withhold()
        equal = self._equal(here)
        base, left, right = (refined(ties, equal) for ties in (self._base, *self.sides))
        wanted = Union()
        for part in parts(both, (base, left, right)):
            for group in self._decided(part, base, (left, right)):
                wanted.join(group)
        for side, ties in ((LEFT, left), (RIGHT, right)):
            new = {path for path in self._settled if path in here[side] and path not in here[1 - side]}
            self._join_new(wanted, ties, new, both)
        self._name_conflicts()
        decided = frozenset(self._settled.keys() - self.open)
        groups = [group for group in wanted.sets() if len(group) > 1]
        for side in (LEFT, RIGHT):
            _SideTying(self, side, groups, decided).run()
        self.merge.tied = Tied(groups, decided, frozenset(self.open), self._base)

    def _withhold(self) -> None:
        """Leave names as they are where a step would change the permissions, time or attributes of a file
        that has a name in conflict, or one that is held."""
        merge, settled = self.merge, self._settled
        held: set[bytes] = set()
        files: list[tuple[int, list[bytes]]] = []
        """The names that stay on each file that keeps several, and its side."""
        files_with: dict[bytes, list[int]] = {}
        for side in (LEFT, RIGHT):
            leaving = {step.path for step in (*merge.writes[side], *merge.removals[side])}
            for group in groups_of(self.sides[side]):
                staying = [path for path in group if path not in leaving]
                if len(staying) > 1:
                    for path in staying:
                        files_with.setdefault(path, []).append(len(files))
                    files.append((side, staying))
        todo = [at for at, (_, names) in enumerate(files) if not settled.keys() >= set(names)]
        while todo:
            side, names = files[todo.pop()]
            new = {path for path in names if path in self.fields[side] or path in self.sets[side]} - held
            held |= new
            todo += [at for path in new for at in files_with[path]]
        for path in held:
            settled.pop(path, None)
            node = self._tree.find(path)
            if (
                merge.settled.pop(path, None) is not None
                and node is not None
                and isinstance(node.row, Ancestor)
            ):
                merge.kept[path] = node.row
        for side in (LEFT, RIGHT) if held else ():
            merge.fields[side][:] = [step for step in merge.fields[side] if step.path not in held]
            merge.attributes[side][:] = [step for step in merge.attributes[side] if step.path not in held]
            merge.writes[side][:] = [
                step for step in merge.writes[side] if isinstance(step, Remove) or step.path not in held
            ]
            for path in held:
                self.writes[side].pop(path, None)
                self.fields[side].pop(path, None)
                self.sets[side].pop(path, None)

    def _equal(self, here: Sequence[Container[bytes]]) -> dict[bytes, object]:
        """Return what stands for all of each name after the run: names that are equal in everything, as far
        as that is known, have the same."""
        union = Union()
        first: dict[object, bytes] = {}
        for path, settled in self._settled.items():
            proofs: list[object] = [settled.content] if len(settled.content) == DIGEST_BYTES else []
            for side in (LEFT, RIGHT):
                # One file has one content, whatever stands for it at each of its names.
                row, file = self.rows[side].get(path), self.sides[side].get(path)
                if row is not None and file is not None and path in here[side]:
                    proofs += [(side, file)] if row.content == settled.content else []
            for proof in proofs:
                union.join([first.setdefault(proof, path), path])
        return {
            path: (union.top(path), self.fields_of(LEFT, path), self.fields_of(RIGHT, path))
            for path in self._settled
        }

    def _decided(self, part: Sequence[bytes], base: Ties, sides: tuple[Ties, Ties]) -> Groups:
        """Return the groups of a part of the tree; none if that is a conflict."""
        groups = merged(part, base, *sides)
        if groups is not None:
            return groups
        rows = self.rows
        for path in part:
            choice = self._choose(path, "links", rows[LEFT][path], rows[RIGHT][path])
            if choice is not None:
                return groups_of(sides[choice.winner], frozenset(part))
        self._note_open(list(part))
        return []

    def _note_open(self, part: list[bytes]) -> None:
        self.open.update(dict.fromkeys(part, part))

    def _join_new(self, wanted: Union, ties: Ties, new: set[bytes], both: set[bytes]) -> None:
        """Have names that one side gives to the other one join the file that they are there."""
        for group in groups_of(ties, new | both):
            arriving = [path for path in group if path in new]
            old = [path for path in group if path in both]
            known = [path for path in old if path not in self.open]
            # Where the old names are parted, the new ones follow the first of them.
            if arriving and (known or not old):
                wanted.join([*known[:1], *arriving])
            elif arriving:
                part = self.open[old[0]]
                part += arriving
                self._note_open(part)

    def _name_conflicts(self) -> None:
        for part in {id(part): part for part in self.open.values()}.values():
            rows = self.rows[LEFT][part[0]], self.rows[RIGHT][part[0]]
            self.merge.conflicts.append(Conflict(min(part), "links", rows))

    def fields_of(self, side: int, path: bytes) -> tuple[int, int, bytes | None]:
        """Return mode, time and attributes that a name has at a side after the run."""
        settled, step = self._settled[path], self.writes[side].get(path)
        if step is not None:
            mode, mtime_ns = step.row.mode, step.row.mtime_ns
        elif path in self.fields[side]:
            mode, mtime_ns = self.fields[side][path].mode, self.fields[side][path].mtime_ns
        else:
            mode, mtime_ns = self.rows[side][path].mode, self.rows[side][path].mtime_ns
        return settled.mode if self._kept.modes else mode, mtime_ns, settled.attributes

    def row_after(self, side: int, path: bytes) -> Row:
        """Return the row of a name of a side as it is after the run."""
        mode, mtime_ns, attributes = self.fields_of(side, path)
        step = self.writes[side].get(path)
        row = step.row if step is not None else self.rows[side][path]
        return row._replace(mode=mode, mtime_ns=mtime_ns, attributes=attributes or b"")


class _SideTying:
    """The steps of one side.

    Each file of the side that has names of several groups stays with one of them, its largest one. Every
    other group gets a file by a step that brings its content, or by a copy of its own one; all names that are
    not on the file of their group by then become links to it.
    """

    def __init__(self, tying: _Tying, side: int, groups: Groups, decided: Collection[bytes]) -> None:
        self._tying = tying
        self._merge = merge = tying.merge
        self._side = side
        self._rows = tying.rows[side]
        self._files = tying.sides[side]
        self._writes = tying.writes[side]
        self._leaving = leaving = {step.path for step in (*merge.writes[side], *merge.removals[side])}
        named = {path for group in groups for path in group}
        alone = [[path] for path in self._files if path in decided and path not in named]
        self._groups = groups + sorted(alone)
        self._staying = {
            path: self._files.get(path, path)
            for group in self._groups
            for path in group
            if path in self._rows and path not in leaving
        }
        self._dropped: set[bytes] = set()
        """Names whose steps others do."""
        self._sets: list[SetAttributes] = []
        """Steps in place of some of them."""

    def run(self) -> None:
        """Replace steps of the side by those that make its links."""
        # The file of a name in conflict is left to that name: the decided names go to other files.
        taken: set[object] = {
            self._files[path]
            for path in self._tying.open
            if path in self._files and path not in self._leaving
        }
        for group in sorted(self._groups, key=lambda group: (-len(group), group)):
            files: dict[object, list[bytes]] = {}
            for path in group:
                file = self._staying.get(path)
                if file is not None and file not in taken:
                    files.setdefault(file, []).append(path)
            if files:
                largest = min(files, key=lambda file: (-len(files[file]), files[file]))
                taken.add(largest)
                self._stay(group, files[largest])
                continue
            source = next((path for path in group if path in self._writes), None)
            if source is None:
                source = group[0]
                self._part(source)
            self._link(group, source, (source,))
        merge, side, dropped = self._merge, self._side, self._dropped
        merge.writes[side][:] = [
            step for step in merge.writes[side] if isinstance(step, Remove) or step.path not in dropped
        ]
        merge.fields[side][:] = [step for step in merge.fields[side] if step.path not in dropped]
        kept = [step for step in merge.attributes[side] if step.path not in dropped]
        merge.attributes[side][:] = kept + self._sets

    def _stay(self, group: Sequence[bytes], names: Sequence[bytes]) -> None:
        """Leave a group on the file that these of its names have. One of them gives it its new fields."""
        fields, sets = self._tying.fields[self._side], self._tying.sets[self._side]
        # All have the same steps, as they are one file.
        changed = [path for path in names if path in fields or path in sets]
        source = changed[0] if changed else names[0]
        self._dropped.update(changed[1:])
        self._merge.shared[self._side].update(changed[1:])
        self._link(group, source, names)

    def _part(self, path: bytes) -> None:
        """Give a name a file of its own."""
        merge, row, after = self._merge, self._rows[path], self._tying.row_after(self._side, path)
        self._dropped.add(path)
        merge.parts[self._side].append(Part(path, merge.guarded_row(after), row))
        if self._tying.has_sets:
            replaces = bool(row.attributes)
            step = SetAttributes(path, after, None, after.attributes, after.mode, False, replaces)
            self._sets.append(step)

    def _link(self, group: Sequence[bytes], source: bytes, names: Collection[bytes]) -> None:
        """Make the names of a group that are none of `names` links to the file at `source`."""
        origin = self._rows.get(source) if source in self._staying else None
        for path in group:
            if path in names:
                continue
            self._dropped.add(path)
            step, after = self._writes.get(path), self._tying.row_after(self._side, path)
            replaced = step.replaced if step is not None else self._rows[path]
            is_new = step is not None
            link = Link(path, source, origin, after, replaced, is_new)
            self._merge.links[self._side].append(link)
