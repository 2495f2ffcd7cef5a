"""Names that rdc keeps for itself: no sync carries them, and what others planted under them stays."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from stat import S_ISLNK
from typing import Any

import pytest

from rdc.errors import ExitCode
from rdc.files.base.paths import is_reserved, is_temporary, temporary_name
from rdc.files.names.name_change import displaced_name
from rdc.files.replace.commit_group import is_own_partial, is_own_temporary
from rdc.files.replace.replacement import KEEP_BYTES
from rdc.files.root.lister import listed_of
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Listed, Metadata, strings
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Changed, Renamed
from rdc.session.source import tree_description as description_module
from rdc.tree.walk import ListAhead, Walk
from tests.support.running.deduping import dedupe, messages
from tests.support.running.followed import Followed
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.manifests import entry, listing
from tests.support.trees.reserved_entries import CONTENT, TIME, seen
from tests.support.trees.unprivileged import NOBODY
from tests.support.wire.turn_messages import HERE, turn

LOOKALIKE = b".rdc-0123456789abcdef.tmp"
ASIDE = b".rdc-0123456789abcdef.old"


def plant(kind: str, path: Path, victim: Path) -> None:
    """Plant it as another user can, in a directory that all may write to."""
    if kind == "hard link":
        os.link(victim, path)
        return
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
        (path / "in it").write_bytes(b"x")
    else:
        path.write_bytes(CONTENT[: KEEP_BYTES + 1])
        path.chmod(0o600)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


KINDS = ("file", "hard link", "link", "fifo", "directory")


class Share:
    """A directory that all may write to, with files of the user of this process."""

    def __init__(self, place: Path) -> None:
        self.source, self.top = place / "source", place / "share"
        self.victim = place / "victim"
        self.victim.write_bytes(b"secret")
        self.victim.chmod(0o600)
        for top in (self.source, self.top):
            top.mkdir()
            for name in ("f", "g"):
                (top / name).write_bytes(CONTENT + (b"new" if top is self.source else b""))
                os.utime(top / name, ns=(TIME, TIME + (top is self.source)))
        self.top.chmod(0o1777)
        self.source.chmod(0o1777)


def sync_here(share: Share) -> None:
    assert command("sync", "--delete", f"{share.source}/", f"{share.top}/").code in {0, 23}


def sync_far(share: Share) -> None:
    assert run_sync(share.source, share.top, SyncOptions(delete=True), way=Way.PUSH).report


def watch(share: Share) -> None:
    with Followed(share.source, share.top) as followed:
        followed.rest()
        assert (share.top / "f").read_bytes() == CONTENT + b"new"
        (share.source / "f").write_bytes(b"changed")
        (share.source / "g").unlink()
        followed.change(b"")
        followed.pass_by(60)
        assert (share.top / "f").read_bytes() == b"changed"
        assert not (share.top / "g").exists()


def share_blocks(share: Share) -> None:
    dedupe("--apply", share.top)


def link(share: Share) -> None:
    """Where the name that a file would lie under meanwhile is taken, it stays as it is, by name."""
    run = dedupe("--apply", "--hardlink", "--journal", share.victim.with_name("journal"), share.top)
    assert run.code == 23
    assert "its name beside it" in messages(run)
    assert os.stat(share.top / "f").st_nlink == os.stat(share.top / "g").st_nlink == 1


def link_and_undo(share: Share) -> None:
    for path in share.top.glob(".rdc-*.old"):
        if path.name != os.fsdecode(ASIDE):
            path.rename(path.with_suffix(".put-by"))
    words = ("--apply", "--hardlink", "--journal", share.victim.with_name("journal"), share.top)
    assert dedupe(*words).code == 0
    assert os.stat(share.top / "f").st_nlink == 2
    for path in share.top.glob(".rdc-*.put-by"):
        path.rename(path.with_suffix(".old"))
    assert dedupe("--undo", share.victim.with_name("journal")).code == 0
    assert os.stat(share.top / "f").st_nlink == 1


VERBS: tuple[Callable[[Share], None], ...] = (sync_here, sync_far, watch, share_blocks, link, link_and_undo)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_what_others_planted_stays_as_it_is(kind: str, verb: Callable[[Share], None], tmp_path: Path) -> None:
    share = Share(tmp_path)
    metadata = Metadata(0o644, TIME, os.geteuid(), os.getegid())
    names = [
        LOOKALIKE,
        ASIDE,
        displaced_name(b"f", len(CONTENT), metadata),
        displaced_name(b"g", len(CONTENT), metadata),
    ]
    # A further name of a file of ours is what a run of ours leaves; with it no content goes.
    names += [] if kind == "hard link" else [temporary_name(b"f"), temporary_name(b"g")]
    planted = [share.top / os.fsdecode(name) for name in names]
    for path in planted:
        plant(kind, path, share.victim)
    before = {path: seen(path) for path in (*planted, share.victim)}
    verb(share)
    assert {path: seen(path) for path in before} == before


def test_what_is_our_own() -> None:
    """Exactly the files, links and directories with a right name that this user made."""

    def entry_of(mode: int, uid: int, links: int = 1) -> os.stat_result:
        return os.stat_result((mode, 1, 1, links, uid, 0, 0, 0, 0, 0))

    user, own = os.geteuid(), temporary_name(b"f")
    closed, open_to_all = entry_of(stat.S_IFDIR | 0o755, 1000), entry_of(stat.S_IFDIR | 0o1777, 0)
    for mode in (stat.S_IFREG | 0o600, stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o700):
        for top in (closed, open_to_all):
            assert is_own_temporary(own, entry_of(mode, user), top)
            assert not is_own_temporary(LOOKALIKE, entry_of(mode, user), top)
            assert not is_own_temporary(ASIDE, entry_of(mode, user), top)
        assert not is_own_temporary(own, entry_of(mode, NOBODY), open_to_all)
        # Root has given it to its final owner already, where only root and the directory's owner can plant.
        assert is_own_temporary(own, entry_of(mode, NOBODY), closed) is (user == 0)
    for mode in (stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK):
        assert not is_own_temporary(own, entry_of(mode | 0o600, user), closed)
    assert is_own_partial(own, entry_of(stat.S_IFREG | 0o600, user), open_to_all)
    assert not is_own_partial(own, entry_of(stat.S_IFREG | 0o600, user, 2), open_to_all)
    assert not is_own_partial(own, entry_of(stat.S_IFLNK | 0o777, user), open_to_all)


def test_a_temporary_is_told_by_its_check_digits() -> None:
    assert is_reserved(LOOKALIKE) and is_reserved(ASIDE)
    assert not is_temporary(LOOKALIKE) and not is_temporary(ASIDE)
    own = temporary_name(b"f")
    for at in range(5, 21):
        for digit in b"0123456789abcdef":
            other = own[:at] + bytes([digit]) + own[at + 1 :]
            assert is_reserved(other)
            assert is_temporary(other) is (other == own)


# Users' files at the source


def problems_of(events: list[Any]) -> dict[bytes, ExitCode]:
    return {event.path_bytes: event.code for event in events if isinstance(event, Problem)}


@pytest.mark.parametrize("many", [0, 300], ids=["listed", "by manifest"])
def test_a_source_names_what_it_leaves_out(many: int, tmp_path: Path) -> None:
    """Once each, every time; the second run costs nothing, and nothing counts as lost."""
    source, here = tmp_path / "source", tmp_path / "here"
    (source / "d").mkdir(parents=True)
    for number in range(many):
        (source / f"file{number}").write_bytes(b"x")
    for name in (LOOKALIKE, ASIDE, b"d/" + LOOKALIKE, temporary_name(b"f"), b".rdc-x.tmp"):
        (source / os.fsdecode(name)).write_bytes(b"hi")
    here.mkdir()
    (here / "extra").write_bytes(b"to go")
    lookalikes = dict.fromkeys((LOOKALIKE, ASIDE, b"d/" + LOOKALIKE), ExitCode.PARTIAL)
    for changed in (True, False):
        run = run_sync(source, here, SyncOptions(delete=True))
        assert problems_of(run.events) == lookalikes
        assert run.done.exit == ExitCode.PARTIAL
        assert bool(run.items) is changed
    assert {name for name in os.listdir(here) if name.startswith(".rdc-")} == {".rdc-x.tmp"}
    assert not (here / "extra").exists()
    rules = (FilterRule(RuleAction.EXCLUDE, b".rdc-*.tmp"), FilterRule(RuleAction.EXCLUDE, b"*.old"))
    assert run_sync(source, here, SyncOptions(rules=rules)).problems == []


def test_users_files_here_are_named_and_left(tmp_path: Path) -> None:
    source, here = tmp_path / "source", tmp_path / "here"
    source.mkdir()
    (source / "f").write_bytes(b"x")
    (here / "extra").mkdir(parents=True)
    for name in (LOOKALIKE, ASIDE, b"extra/" + LOOKALIKE):
        (here / os.fsdecode(name)).write_bytes(b"mine")
    own = [here / os.fsdecode(temporary_name(b"f")), here / "extra" / os.fsdecode(temporary_name(b"g"))]
    for path in own:
        path.write_bytes(b"left")
    kept = run_sync(source, here)
    assert (kept.done.exit, kept.problems) == (ExitCode.OK, [])
    assert problems_of(kept.events).keys() >= {LOOKALIKE, ASIDE}
    deleted = run_sync(source, here, SyncOptions(delete=True))
    assert deleted.done.exit == ExitCode.PARTIAL
    assert {event.path_bytes for event in deleted.problems} == {LOOKALIKE, ASIDE, b"extra/" + LOOKALIKE}
    for name in (LOOKALIKE, ASIDE, b"extra/" + LOOKALIKE):
        assert (here / os.fsdecode(name)).read_bytes() == b"mine"
    assert not any(path.exists() for path in own)


@pytest.mark.parametrize("verb", ["scan", "dupes", "dedupe"])
def test_searches_name_what_they_pass_over(verb: str, tmp_path: Path) -> None:
    for name in (LOOKALIKE, b"one", b"two"):
        (tmp_path / os.fsdecode(name)).write_bytes(CONTENT)
    ended = command(verb, *(["--no-catalog", "--hardlink"] if verb == "dedupe" else []), tmp_path)
    assert ended.code == 0
    assert (ended.err + ended.out).count(os.fsdecode(LOOKALIKE)) == 1


# A source that tells of them


class _TellsAll(Walk):
    """Reserved names are entries like any other."""

    def _list(self, path: bytes, lister: ListAhead, following: Sequence[bytes]) -> Listed:
        found, top = self._root.listed(path), self._root.directory(path).fd
        names = sorted([*strings(found.listing.names), *found.reserved])
        stats = {name: os.stat(name, dir_fd=top, follow_symlinks=False) for name in names}
        links = [name for name in names if S_ISLNK(stats[name].st_mode)]
        return listed_of(stats, {name: os.readlink(name, dir_fd=top) for name in links})


@pytest.mark.parametrize("hard_links", [False, True])
@pytest.mark.parametrize("many", [0, 300], ids=["listed", "by manifest"])
def test_a_source_that_tells_of_them_is_refused_by_name(
    many: int, hard_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, here = tmp_path / "source", tmp_path / "here"
    (source / os.fsdecode(LOOKALIKE) / "below").mkdir(parents=True)
    (source / os.fsdecode(LOOKALIKE) / "below" / "file").write_bytes(b"evil")
    (source / os.fsdecode(temporary_name(b"y"))).symlink_to("/etc/passwd")
    (source / os.fsdecode(ASIDE)).write_bytes(b"evil")
    (source / "z").hardlink_to(source / os.fsdecode(ASIDE))
    for number in range(many):
        (source / f"file{number}").write_bytes(b"x")
    here.mkdir()
    if many:
        # Something is here, so that manifests are compared.
        assert run_sync(source, here).done.exit == ExitCode.PARTIAL
        (source / "z").write_bytes(b"newer")
    monkeypatch.setattr(description_module, "Walk", _TellsAll)
    options = SyncOptions(delete=True, hard_links=hard_links, fsync=False)
    for _ in range(2):
        found = problems_of(sync_in_turns(source, here, options).events)
        assert {path: code for path, code in found.items() if is_reserved(path)} == {
            os.fsencode(name): ExitCode.PARTIAL
            for name in os.listdir(source)
            if is_reserved(os.fsencode(name))
        }
        assert not any(is_reserved(os.fsencode(name)) for name in os.listdir(here))
        assert (here / "z").read_bytes() == (source / "z").read_bytes()


def test_a_turn_that_tells_of_them_is_refused_by_name(tmp_path: Path) -> None:
    here = tmp_path / "here"
    inside = here / os.fsdecode(LOOKALIKE)
    inside.mkdir(parents=True)
    for path in (here / os.fsdecode(ASIDE), inside / "file", here / "plain"):
        path.write_bytes(b"mine")
    rows = listing([entry(ASIDE), entry(LOOKALIKE, Kind.DIRECTORY)])
    lies = (
        Changed(b"", HERE, 0, ASIDE + b"\0", rows, ()),
        Changed(LOOKALIKE, HERE, 2, b"file\0", listing([entry(b"new")]), ()),
        Renamed(ASIDE, b"taken", Kind.FILE, 4, HERE),
        Renamed(b"plain", LOOKALIKE + b"/taken", Kind.FILE, 4, HERE),
        Renamed(LOOKALIKE, b"taken", Kind.DIRECTORY, 0, HERE),
    )
    before = {path: seen(path) for path in here.rglob("*")}
    for number, lie in enumerate(lies):
        done = turn(here, *lies[: number + 1], only=b"")
        assert done._events.codes == {ExitCode.PARTIAL}, lie
    assert {path: seen(path) for path in here.rglob("*")} == before


# What a killed dedupe left


def test_roots_own_view_hides_them_and_tells_their_names(tmp_path: Path) -> None:
    for name in (LOOKALIKE, ASIDE, b"f"):
        (tmp_path / os.fsdecode(name)).touch()
    found = Root.open(os.fsencode(tmp_path)).listed(b"")
    assert found.listing.names == b"f\0"
    assert sorted(found.reserved) == [ASIDE, LOOKALIKE]
