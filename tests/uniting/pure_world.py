"""Two trees in memory, their users, and runs of the plan on them, which may be cut after any step.

Each step checks what it expects, as the real run does. `lost` names what a run replaced or removed although
both sides had not last had it in common there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rdc.lean.records import replace as with_fields
from rdc.model.preserved import ACCESS_ACL, AttributeKinds, Attributes, mode_with_acl
from rdc.uniting.attributes import AttributeSets
from rdc.uniting.hard_links import Links
from rdc.uniting.plan import (
    Intent,
    Link,
    Part,
    Plan,
    Remove,
    Rules,
    SetAttributes,
    SetFields,
    Write,
    make_plan,
)
from rdc.uniting.renames import CopyHere, MakeDirectory, Rename
from rdc.uniting.rows import (
    DIRECTORY,
    FILE,
    LEFT,
    RIGHT,
    SYMLINK,
    Ancestor,
    Doubt,
    Node,
    Row,
    Stamp,
    is_below,
    tree_of,
)
from rdc.uniting.ties import grouped, next_ties
from tests.uniting.acls import acl, with_mode

KINDS = {"d": DIRECTORY, "f": FILE, "l": SYMLINK}


@dataclass(frozen=True)
class Thing:
    """An entry on a disk."""

    kind: int
    content: bytes
    mode: int
    mtime: int
    inode: int
    ctime: int
    attributes: bytes = b""
    """The digest of the set of its extended attributes."""

    @property
    def stamp(self) -> Stamp:
        return Stamp(len(self.content), self.mode, self.mtime, self.inode, self.ctime)


Disk = dict[bytes, Thing]


def attributes_of(number: int) -> Attributes:
    """The set of extended attributes with this number; none for 0."""
    return ((b"user.rdc.test", b"%d" % number),) if number else ()


def with_acl_of(number: int, kind: int) -> Attributes:
    """The set with this number of an entry of a kind: an access ACL, and more in some; none for 0."""
    if not number:
        return ()
    owner = 7 if kind == DIRECTORY else 6
    users = [(1_000 + number, number % 8)]
    value = acl(owner, number // 2 % 8, (5, 0, 1)[number % 3], number // 3 % 8, users)
    return ((ACCESS_ACL, value), *(attributes_of(number) if number % 2 else ()))


def all_sets() -> AttributeSets:
    return AttributeSets(AttributeKinds.USER | AttributeKinds.ACL)


def parent(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def under(tree: Disk, path: bytes) -> list[bytes]:
    return sorted(each for each in tree if each == path or is_below(each, path))


@dataclass
class World:
    inodes: int = 0
    """0: each inode number is used once; otherwise numbers repeat after so many, and lie."""
    has_times: bool = False
    """True if no two contents have one time. Without an ancestor a file's size and time say what it has."""
    has_attributes: bool = False
    """True if extended attributes take part in runs."""
    has_acls: bool = False
    """True if some of them are access ACLs, of which the mode is a part."""
    has_links: bool = False
    """True if hard links take part in runs. Inode numbers do not lie then."""
    ties: dict[bytes, int] = field(default_factory=dict)
    """The names that share a file in the ancestor."""
    sets: AttributeSets = field(default_factory=all_sets)
    disks: tuple[Disk, Disk] = field(default_factory=lambda: ({}, {}))
    base: dict[bytes, Ancestor] = field(default_factory=dict)
    plans: list[tuple[int, dict[bytes, Intent], frozenset[tuple[bytes, bytes]]]] = field(default_factory=list)
    """The journals: the generation of the ancestor that a run began with, and what it was about to do."""
    generation: int = 0
    common: dict[bytes, set[tuple[int, bytes]]] = field(default_factory=dict)
    """What both sides last had in common when a run looked, by path; after a rename that of both names."""
    lost: list[str] = field(default_factory=list)
    ticks: int = 0
    trees: tuple[Node, Node, Node] | None = None
    """What the last plan was made from, relabelled by the renames that it accepted."""

    # Users

    def tick(self) -> int:
        self.ticks += 1
        return self.ticks

    def inode(self) -> int:
        number = self.tick()
        return number if not self.inodes else 1 + number % self.inodes

    def note(self) -> None:
        left, right = self.disks
        for path in left.keys() & right.keys():
            if (found := (left[path].kind, left[path].content)) == (right[path].kind, right[path].content):
                self.common[path] = {found}

    def may_make(self, side: int, path: bytes) -> bool:
        disk = self.disks[side]
        return not parent(path) or (parent(path) in disk and disk[parent(path)].kind == DIRECTORY)

    def write(self, side: int, path: bytes, content: bytes, *, mtime: int | None = None) -> None:
        old = self.disks[side].get(path)
        if not self.may_make(side, path) or (old is not None and old.kind == DIRECTORY):
            return
        now = self.tick()
        is_same = old is not None and old.kind == FILE
        inode = old.inode if old is not None and is_same else self.inode()
        attributes = old.attributes if old is not None and is_same else b""
        time = now if mtime is None else mtime
        self.put(side, path, Thing(FILE, content, old.mode if old else 0o644, time, inode, now, attributes))

    def link(self, side: int, path: bytes, target: bytes) -> None:
        old = self.disks[side].get(path)
        if self.may_make(side, path) and (old is None or old.kind != DIRECTORY):
            self.disks[side][path] = Thing(SYMLINK, target, 0o777, self.tick(), self.inode(), self.ticks)

    def mkdir(self, side: int, path: bytes) -> None:
        if self.may_make(side, path) and path not in self.disks[side]:
            self.disks[side][path] = Thing(DIRECTORY, b"", 0o755, self.tick(), self.inode(), self.ticks)

    def change(self, side: int, path: bytes, *, mode: int | None = None, mtime: int | None = None) -> None:
        thing = self.disks[side].get(path)
        if thing is None or thing.kind == SYMLINK:
            return
        digest = thing.attributes
        if mode is not None and (value := self.acl_of(digest)) is not None:
            attributes = {**dict(self.sets.of(digest)), ACCESS_ACL: with_mode(value, mode)}
            digest = self.sets.add(tuple(sorted(attributes.items())))
        mode = thing.mode if mode is None else mode
        mtime = thing.mtime if mtime is None or thing.kind == DIRECTORY else mtime
        self.put(side, path, replace(thing, mode=mode, mtime=mtime, ctime=self.tick(), attributes=digest))

    def attribute(self, side: int, path: bytes, number: int) -> None:
        """Give an entry another set of extended attributes."""
        thing = self.disks[side].get(path)
        if thing is not None and thing.kind != SYMLINK:
            found = with_acl_of(number, thing.kind) if self.has_acls else attributes_of(number)
            digest = self.sets.add(found)
            mode = self.mode_with(thing.mode, digest)
            self.put(side, path, replace(thing, mode=mode, attributes=digest, ctime=self.tick()))

    def put(self, side: int, path: bytes, thing: Thing) -> None:
        """Have a name, and all others of its file, show what the file is now."""
        disk = self.disks[side]
        disk[path] = thing
        for other in self.names(side, thing):
            disk[other] = thing

    def names(self, side: int, thing: Thing) -> list[bytes]:
        """The names of a file."""
        if not self.has_links or thing.kind != FILE:
            return []
        some = self.disks[side].items()
        return [path for path, other in some if (other.kind, other.inode) == (FILE, thing.inode)]

    def tie(self, side: int, path: bytes, other: bytes) -> None:
        """Make `path` a further name of the file at `other`."""
        disk, old = self.disks[side], self.disks[side].get(path)
        if other not in disk or disk[other].kind != FILE or not self.may_make(side, path):
            return
        if path != other and (old is None or old.kind != DIRECTORY):
            self.unlink(side, path)
            self.put(side, path, replace(disk[other], ctime=self.tick()))

    def part(self, side: int, path: bytes) -> None:
        """Give a name a file of its own with the same content."""
        thing = self.disks[side].get(path)
        if thing is not None and len(self.names(side, thing)) > 1:
            self.unlink(side, path)
            self.disks[side][path] = replace(thing, inode=self.inode(), ctime=self.tick())

    def unlink(self, side: int, path: bytes) -> None:
        """Take a name away, of which other names of its file have a new change time."""
        thing = self.disks[side].pop(path, None)
        for other in self.names(side, thing) if thing is not None else ():
            self.disks[side][other] = replace(self.disks[side][other], ctime=self.tick())

    def ties_at(self, side: int) -> dict[bytes, int]:
        """The names that share a file at a side."""
        files: dict[int, list[bytes]] = {}
        for path, thing in self.disks[side].items():
            if thing.kind == FILE and self.has_links:
                files.setdefault(thing.inode, []).append(path)
        return grouped(files.values())

    def acl_of(self, digest: bytes) -> bytes | None:
        """The access ACL of a set."""
        return dict(self.sets.of(digest)).get(ACCESS_ACL)

    def mode_with(self, mode: int, digest: bytes) -> int:
        """The mode of an entry once it has this set."""
        value = self.acl_of(digest)
        return mode if value is None else mode_with_acl(mode, value)

    def remove(self, side: int, path: bytes) -> None:
        for each in under(self.disks[side], path):
            self.unlink(side, each)

    def move(self, side: int, old: bytes, new: bytes) -> None:
        disk = self.disks[side]
        if old not in disk or new in disk or is_below(new, old) or not self.may_make(side, new):
            return
        self._move(side, old, new)

    def _move(self, side: int, old: bytes, new: bytes) -> None:
        disk = self.disks[side]
        for each in under(disk, old):
            target = new + each[len(old) :]
            thing = disk.pop(each)
            disk[target] = thing
            if each == old:
                self.put(side, target, replace(thing, ctime=self.tick()))
            self.common[target] = self.common.get(target, set()) | self.common.get(each, set())

    # Runs

    def row(self, thing: Thing, is_linked: bool) -> Row:
        return Row(
            thing.kind, thing.content, thing.mode, thing.mtime, 0 if is_linked else thing.inode,
            None, thing.stamp, Doubt.NONE, is_linked, thing.attributes,
        )  # fmt: skip

    def plan(self, *, exchanged: bool = False, rules: Rules | None = None) -> Plan:
        """The plan, made with the sides exchanged if wanted. Steps then name the other side."""
        ties = [self.ties_at(side) for side in (LEFT, RIGHT)]
        views = [
            {path: self.row(thing, path in ties[side]) for path, thing in self.disks[side].items()}
            for side in (LEFT, RIGHT)
        ]
        base = dict(self.base)
        unfinished: dict[bytes, tuple[Intent, ...]] = {}
        begun: set[tuple[bytes, bytes]] = set()
        for generation, intents, renames in self.plans:
            if generation == self.generation:
                begun |= renames
                for path, intent in intents.items():
                    turned = intent[::-1] if exchanged else intent
                    unfinished[path] = (*unfinished.get(path, ()), turned)
        if exchanged:
            views.reverse()
            ties.reverse()
            base = {path: row._replace(stamps=row.stamps[::-1]) for path, row in base.items()}
        rules = with_fields(
            rules or Rules(),
            unfinished=unfinished,
            begun=frozenset(begun),
            attributes=self.has_attributes,
            guard=self.sets.guard if self.has_acls else None,
            tie=Links(self.ties, (ties[0], ties[1])).tie if self.has_links else None,
        )
        self.trees = (tree_of(base), tree_of(views[0]), tree_of(views[1]))
        return make_plan(*self.trees, rules)

    def run(self, *, stop: int | None = None, exchanged: bool = False, rules: Rules | None = None) -> Plan:
        """Run once; after `stop` steps the run is killed."""
        plan = self.plan(exchanged=exchanged, rules=rules)
        flip = 1 if exchanged else 0
        self.note()
        intents = {path: intent[::-1] if exchanged else intent for path, intent in plan.journal.items()}
        self.plans.append((self.generation, intents, plan.renames))
        self.check_granted(plan)
        for number, (side, step) in enumerate((*plan.steps, *plan.attributes, *plan.links)):
            if number == stop:
                return plan
            self.do(side ^ flip, step, allowed=rules is not None)
            self.note()
        if stop is not None:
            return plan
        self.generation = self.tick()
        self.plans.clear()
        stamps = {
            path: (self.disks[LEFT][path].stamp, self.disks[RIGHT][path].stamp) for path in plan.settled
        }
        self.base = {
            path: Ancestor(*row[:4], stamps[path], row.attributes) for path, row in plan.settled.items()
        }
        for path, kept in plan.kept.items():
            assert path not in self.base, path
            self.base[path] = kept if not exchanged else kept._replace(stamps=kept.stamps[::-1])
        if plan.tied is not None:
            files = {path for path, row in self.base.items() if row.kind == FILE}
            self.ties = next_ties(plan.tied, files, lambda _: False)
        return plan

    def check_granted(self, plan: Plan) -> None:
        """Check that no new entry grants more than its ACL will, which comes later."""
        coming = {(side, step.path): step.wanted for side, step in plan.attributes}
        for side, step in plan.steps:
            if isinstance(step, (Write, MakeDirectory, CopyHere)):
                path = step.new if isinstance(step, CopyHere) else step.path
                may = self.sets.guard(coming.get((side, path), b""))
                assert may is None or not step.row.mode & 0o77 & ~may, step

    def check_gone(self, side: int, path: bytes, thing: Thing) -> None:
        if len(self.names(side, thing)) > 1:
            return  # the content stays
        if thing.kind != DIRECTORY and (thing.kind, thing.content) not in self.common.get(path, ()):
            self.lost.append(f"{'left' if side == LEFT else 'right'}: {path!r} {thing.content!r}")

    def do(self, side: int, step: object, *, allowed: bool = False) -> None:
        disk, other = self.disks[side], self.disks[1 - side]
        match step:
            case Rename(old, new, row):
                assert disk[old].stamp[:4] == row.stamp[:4], (step, disk)
                assert new not in disk, (step, disk)
                assert self.may_make(side, new), (step, disk)
                self._move(side, old, new)
            case MakeDirectory(path, row):
                assert path not in disk, (step, disk)
                assert self.may_make(side, path), (step, disk)
                disk[path] = Thing(DIRECTORY, b"", row.mode, 0, self.inode(), self.tick())
            case Write(path, row, replaced, _):
                assert self.may_make(side, path), (step, disk)
                assert (other[path].kind, other[path].content) == (row.kind, row.content), (step, other)
                if replaced is None:
                    assert path not in disk, (step, disk)
                else:
                    assert disk[path].content == replaced.content, (step, disk)
                    assert row.kind != DIRECTORY
                    if not allowed:
                        self.check_gone(side, path, disk[path])
                # A file has its attributes before it has its name.
                attributes = row.attributes if row.kind == FILE else b""
                mode = self.mode_with(row.mode, attributes)
                self.unlink(side, path)
                disk[path] = Thing(
                    row.kind, row.content, mode, row.mtime_ns, self.inode(), self.tick(), attributes
                )
            case SetFields(path, row, mode, mtime_ns):
                assert disk[path].kind == row.kind, (step, disk)
                assert mode == disk[path].mode or self.acl_of(disk[path].attributes) is None, (step, disk)
                self.put(side, path, replace(disk[path], mode=mode, mtime=mtime_ns, ctime=self.tick()))
            case SetAttributes(path, row, before, wanted, mode, _, _):
                assert disk[path].kind == row.kind, (step, disk)
                assert before is None or disk[path].attributes == before, (step, disk)
                had = self.acl_of(disk[path].attributes) is not None
                mode = self.mode_with(mode if had else disk[path].mode, wanted)
                self.put(side, path, replace(disk[path], mode=mode, attributes=wanted, ctime=self.tick()))
            case Part(path, row, replaced):
                assert disk[path].content == replaced.content, (step, disk)
                mode = self.mode_with(row.mode, row.attributes)
                self.unlink(side, path)
                disk[path] = Thing(
                    FILE, replaced.content, mode, row.mtime_ns, self.inode(), self.tick(), row.attributes
                )
            case Link(path, source, origin, row, replaced, brings):
                found = disk[source]
                assert self.may_make(side, path), (step, disk)
                assert (found.mode, found.mtime, found.attributes) == (row.mode, row.mtime_ns, row.attributes)
                assert origin is None or found.content == origin.content, (step, disk)
                assert replaced is not None or (brings and path not in disk), (step, disk)
                if replaced is not None:
                    assert disk[path].content == replaced.content, (step, disk)
                    assert brings == (found.content != replaced.content), (step, disk)
                    if not allowed:
                        self.check_gone(side, path, disk[path])
                assert found.content == (other[path].content if brings else disk[path].content), (step, disk)
                self.unlink(side, path)
                self.put(side, path, replace(found, ctime=self.tick()))
            case Remove(path, row):
                assert under(disk, path) == [path], (step, disk)
                assert (disk[path].kind, disk[path].content) == (row.kind, row.content), (step, disk)
                if not allowed:
                    self.check_gone(side, path, disk[path])
                self.unlink(side, path)
            case _:
                raise AssertionError(step)
