"""--copy-links and its kin, --safe-links, -O and -J: beside rsync's, confined, and with links that change."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rdc.errors import ExitCode, FileError
from rdc.files.root.followed_links import FollowedLinks
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
from rdc.limits import SMALL_MANIFEST
from rdc.model.options import LinkChoice, leads_outside
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem, silent
from rdc.session.trees.sites import ServedDirectory
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk
from tests.support.running.beside_rsync import check, rsync, without_now
from tests.support.running.compared_trees import view
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

PARTS = ("b", "d", "..", ".", "", "...", "b..")
TARGETS = sorted(
    {"/".join(parts) for one in PARTS for two in (*PARTS, None) for three in ("x", "..", None)
     for parts in [[part for part in (one, two, three) if part is not None]]} - {""}
)  # fmt: skip

FOLLOWING = {
    "every": SyncOptions(copy_links=True, fsync=False),
    "directories": SyncOptions(copy_dirlinks=True, fsync=False),
    "unsafe": SyncOptions(copy_unsafe_links=True, fsync=False),
}


@pytest.mark.needs("rsync")
def test_what_leads_outside_is_what_rsync_takes_for_it(tmp_path: Path) -> None:
    source = tmp_path / "s"
    made = {}
    for above in ("", "d", "d/e"):
        (source / above).mkdir(parents=True, exist_ok=True)
        for number, target in enumerate(TARGETS):
            path = os.path.join(above, f"l{number}")
            os.symlink(target, source / path)
            made[path] = target
    rsync("--safe-links", f"{source}/", f"{tmp_path}/d/")
    for path, target in made.items():
        outside = leads_outside(os.fsencode(target), os.fsencode(path))
        assert outside is not os.path.lexists(tmp_path / "d" / path), (path, target)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "outside", tree({"x": b"outside", "deep/y": b"further"}))


def linked(outside: Path) -> Tree:
    return tree(
        {
            "f": File(b"content", 0o640, 10**18),
            "d/g": b"in a directory",
            "to file": Link(b"f"),
            "to directory": Link(b"d"),
            "chain": Link(b"to file"),
            "d/up": Link(b"../f"),
            "d/out": Link(os.fsencode(outside / "x")),
            "out": Link(os.fsencode(outside)),
            "many up": Link(b"../../../nowhere"),
        }
    )


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    "words",
    ["-L", "-k", "--copy-unsafe-links", "--safe-links", "-k --copy-unsafe-links", "-L --delete -c", "-kH"],
)
def test_each_option_does_what_rsync_does(words: str, outside: Path) -> None:
    wanted = linked(outside)
    held = tree({"to file": b"older", "to directory/g": b"in a directory", "out": Link(b"f"), "gone": b""})
    if "--delete" in words:
        del wanted[b"many up"]  # else rsync says besides that it deletes nothing
    check(wanted, tree(), *words.split())
    check(wanted, held, *words.split())


@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("chosen", FOLLOWING)
@pytest.mark.parametrize("way", Way)
def test_followed_links_are_what_they_lead_to(
    way: Way, chosen: str, many: bool, outside: Path, tmp_path: Path
) -> None:
    wanted = linked(outside)
    del wanted[b"many up"]
    more = {b"d/n%03d" % n: File(b"%d" % n, 0o600) for n in range(SMALL_MANIFEST if many else 3)}
    source, copy = write_tree(tmp_path / "s", {**wanted, **more}), tmp_path / "d"
    options = FOLLOWING[chosen]
    run = run_sync(source, copy, options, way=way)
    assert (run.done.exit, run.problems) == (ExitCode.OK, [])
    found = read_tree(copy)
    if chosen == "every":
        assert not any(isinstance(node, Link) for node in found.values())
        assert found[b"chain"] == found[b"f"]
        assert found[b"to directory/up"] == found[b"f"]
    else:
        assert found[b"to file"] == wanted[b"to file"]
        assert isinstance(found[b"to directory"], Directory if chosen == "directories" else Link)
        assert isinstance(found[b"d/out"], Link if chosen == "directories" else File)
    assert (copy / "out/deep/y").read_bytes() == b"further"
    again = run_sync(source, copy, options, way=way)
    assert (again.done.changed, again.items) == (0, [])
    (outside / "deep/y").write_bytes(b"another one")
    if many:
        (source / "d/n007").write_bytes(b"changed")
    assert run_sync(source, copy, options, way=way).done.exit == ExitCode.OK
    assert (copy / "out/deep/y").read_bytes() == b"another one"


@pytest.mark.parametrize("way", Way)
def test_what_leads_nowhere_or_back_is_named_and_nothing_is_deleted(way: Way, tmp_path: Path) -> None:
    source = write_tree(
        tmp_path / "s",
        tree(
            {
                "a/f": b"content",
                "a/self": Link(b"."),
                "a/up": Link(b".."),
                "a/other": Link(b"../b"),
                "b/one": Link(b"../a"),
                "none": Link(b"nothing"),
                "round": Link(b"round"),
                "left out": Link(b"nothing"),
                "proc": Link(b"/proc/self/fd/0"),
            }
        ),
    )
    copy = write_tree(tmp_path / "d", tree({"extraneous": b"stays"}))
    rules = (FilterRule(RuleAction.EXCLUDE, b"left out"), FilterRule(RuleAction.EXCLUDE, b"proc"))
    options = SyncOptions(copy_links=True, delete=True, rules=rules, fsync=False)
    run = run_sync(source, copy, options, way=way)
    assert run.done.exit == ExitCode.PARTIAL
    messages = {os.fsdecode(problem.path_bytes): problem.message for problem in run.problems}
    back = {path for path, text in messages.items() if "the link leads back to a directory above it" in text}
    assert back == {"a/self", "a/up", "a/other/one", "b/one/self", "b/one/up", "b/one/other"}
    assert "the link leads to nothing: nothing" in messages["none"]
    assert "Too many levels of symbolic links: round" in messages["round"]
    assert len(messages) == len(back) + 3  # and that nothing is deleted
    assert (copy / "extraneous").exists()
    assert (copy / "b/one/f").read_bytes() == b"content"


@pytest.mark.needs("rsync")
def test_one_link_as_src(outside: Path, tmp_path: Path) -> None:
    for name, target in (("file", outside / "x"), ("directory", outside), ("none", tmp_path / "nothing")):
        (tmp_path / name).symlink_to(target)
    options = SyncOptions(copy_links=True, fsync=False)
    for name in ("file", "directory"):
        place = os.fsencode(tmp_path / name)
        theirs, ours = tmp_path / "theirs", tmp_path / "ours"
        assert run_sync(place, ours, options).problems == []
        assert rsync("-L", os.fsdecode(place), f"{theirs}/")[0] == 0
        assert describe(without_now(read_tree(theirs)), without_now(read_tree(ours))) == []
    with pytest.raises(FileError, match="none: cannot follow its links: the link leads to nothing"):
        run_sync(os.fsencode(tmp_path / "none"), tmp_path / "ours", options)


def test_no_link_leads_into_the_destination(tmp_path: Path) -> None:
    copy = write_tree(tmp_path / "d", tree({"in/side": b"x"}))
    source = write_tree(tmp_path / "s", {**tree(), b"l": Link(os.fsencode(copy)), b"m": Link(b"../d/in")})
    run = run_sync(source, copy, SyncOptions(copy_links=True, fsync=False))
    assert [problem.path_bytes for problem in run.problems] == [b"l", b"m"]
    assert "the link leads to the destination" in run.problems[0].message


@pytest.mark.needs("rsync")
def test_hard_links_and_attributes_are_those_of_what_is_followed(outside: Path, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", {**tree(), b"l": Link(os.fsencode(outside / "x")), b"d": Link(b"/")})
    (source / "d").unlink()
    (source / "d").symlink_to(outside)
    os.link(outside / "x", outside / "z")
    os.setxattr(outside / "x", "user.note", b"of the file")
    os.setxattr(outside / "deep", "user.note", b"of a directory")
    options = SyncOptions(copy_links=True, hard_links=True, xattrs=True, fsync=False)
    assert run_sync(source, tmp_path / "d", options).problems == []
    assert rsync("-LHX", f"{source}/", f"{tmp_path}/theirs/")[0] == 0
    ours, theirs = view(os.fsencode(tmp_path / "d")), view(os.fsencode(tmp_path / "theirs"))
    assert {p: (s.said, s.attributes) for p, s in ours.items()} == {
        p: (s.said, s.attributes) for p, s in theirs.items()
    }
    assert (tmp_path / "d/l").stat().st_ino == (tmp_path / "d/d/z").stat().st_ino
    assert run_sync(source, tmp_path / "d", options).items == []


# A served source


def confined(top: Path) -> ServedDirectory:
    return ServedDirectory(lambda: os.open(top, os.O_PATH | os.O_DIRECTORY), "the served directory", b"/")


def test_a_served_source_follows_only_what_stays_inside(outside: Path, tmp_path: Path) -> None:
    secret = os.fsencode(outside / "x")
    top = write_tree(
        tmp_path / "served",
        {
            **tree({"tree/f": b"mine", "beside/g": b"shared"}),
            b"tree/out": Link(secret),
            b"tree/dir": Link(os.fsencode(outside)),
            b"tree/up": Link(b"../../outside"),
            b"tree/near": Link(b"../../served-too"),
            b"tree/in": Link(b"../beside"),
            b"tree/hop": Link(b"../beside/hop"),
            b"beside/hop": Link(secret),
        },
    )
    write_tree(tmp_path / "served-too", tree({"g": b"not served"}))
    problems: list[Event] = []
    source = SourceTree.open(b"/tree/", confined(top), SyncOptions(copy_links=True))
    assert source.root.reads.followed is not None
    source.root.reads.followed.begin(problems.append, FilterList(()).excluded)
    shown = {path: listing.unpacked().names for path, listing, _ in Walk(source.root, FilterList(()), silent)}
    assert shown == {b"": (b"f", b"in"), b"in": (b"g",)}
    said = [problem for problem in problems if isinstance(problem, Problem)]
    assert [problem.path_bytes for problem in said] == [
        b"dir", b"hop", b"near", b"out", b"up", b"in/hop",
    ]  # fmt: skip
    assert all("the link leads out of the served directory" in problem.message for problem in said)
    with source.root.open_read(b"in/g") as file:
        assert file.whole() == b"shared"
    with pytest.raises(FileError):
        source.root.open_read(b"out")
    source.root.release()


@pytest.mark.parametrize("late", ["the link", "what it leads to", "a directory above that"])
def test_a_link_that_is_swapped_after_it_was_listed_leads_to_nothing_new(
    late: str, outside: Path, tmp_path: Path
) -> None:
    top = write_tree(
        tmp_path / "served",
        {
            **tree({"b/c/g": b"shared", "s/f": b"mine"}),
            b"s/in": Link(b"../b/c"),
            b"s/file": Link(b"../b/c/g"),
        },
    )
    source = SourceTree.open(b"/s/", confined(top), SyncOptions(copy_links=True))
    list(Walk(source.root, FilterList(()), silent))
    (outside / "g").write_bytes(b"secret")
    (outside / "c").mkdir()
    (outside / "c/g").write_bytes(b"secret")
    if late == "the link":
        for name, target in (("in", outside), ("file", outside / "g")):
            (top / "s" / name).unlink()
            (top / "s" / name).symlink_to(target)
        for path in (b"in/g", b"file"):
            with source.root.open_read(path) as file:
                assert file.whole() == b"shared"
    else:
        place = top / "b/c" if late == "what it leads to" else top / "b"
        shutil.move(place, tmp_path / "away")
        place.symlink_to(outside)
        source.root.forget(b"")
        assert source.root.reads.followed is not None
        assert isinstance(source.root.reads.followed.top, Root)
        source.root.reads.followed.top.forget(b"")
        for path in (b"in/g", b"file"):
            with pytest.raises(FileError):
                source.root.open_read(path)
    source.root.release()


def test_a_followed_path_that_is_no_link_any_more_is_what_it_is(outside: Path, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", {**tree(), b"l": Link(os.fsencode(outside))})
    root = Root.open(os.fsencode(source))
    followed = FollowedLinks(root, Root.open(b"/"), LinkChoice(every=True), only=None)
    root = root.having(ReadPolicy(followed=followed))
    assert root.list(b"").kinds == b"\1"
    assert root.list(b"l").names == (b"deep", b"x")
    (source / "l").unlink()
    (source / "l").mkdir()
    followed.begin(silent, FilterList(()).excluded)
    assert root.list(b"").kinds == b"\1"
    assert root.list(b"l").names == ()
    root.release()


# Times


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("words", ["-O", "-J", "-OJ", "-O --delete", "-J -c"])
def test_omitted_times(words: str) -> None:
    new_link = Link(b"e" if "J" in words else b"d", 10**18)  # a changed one would have the time of the run
    wanted = tree({"d/f": b"content", "e": Directory(0o750, 10**18), "l": new_link})
    held = tree({"d/f": b"content", "e": Directory(0o700, 2 * 10**18), "l": Link(b"e", 2 * 10**18)})
    check(wanted, held, *words.split())


@pytest.mark.needs("rsync")
def test_a_link_that_is_made_anew_is_said_to_have_another_time_as_rsync_says(tmp_path: Path) -> None:
    wanted, held = tree({"l": Link(b"d", 10**18)}), tree({"l": Link(b"e", 2 * 10**18)})
    source = write_tree(tmp_path / "s", wanted)
    theirs, ours = (write_tree(tmp_path / name, held) for name in ("theirs", "ours"))
    options = SyncOptions(omit_link_times=True, fsync=False)
    assert run_sync(source, ours, options).items == [
        line.partition(" -> ")[0] for line in rsync("-iJ", f"{source}/", f"{theirs}/")[1]
    ]
    assert abs((ours / "l").lstat().st_mtime - (theirs / "l").lstat().st_mtime) < 600


@pytest.mark.parametrize("many", [False, True], ids=["listed", "by manifest"])
@pytest.mark.parametrize("way", Way)
def test_omitted_times_are_no_difference(way: Way, many: bool, tmp_path: Path) -> None:
    files = {f"d/{number}": b"x" for number in range(SMALL_MANIFEST if many else 3)}
    wanted = tree({**files, "l": Link(b"d", 10**18)})
    source, copy = write_tree(tmp_path / "s", wanted), write_tree(tmp_path / "d", wanted)
    for place in ("", "d", "l"):
        os.utime(copy / place, ns=(10**17, 10**17), follow_symlinks=False)
    options = SyncOptions(omit_dir_times=True, omit_link_times=True, fsync=False)
    run = run_sync(source, copy, options, way=way)
    assert (run.items, run.problems, run.done.changed) == ([], [], 0)
    (source / "d/1").write_bytes(b"longer")
    (source / "d").chmod(0o701)
    items = {item[1:] for item in run_sync(source, copy, options, way=way).items}
    assert items == {"d...p..... d/", "f.st...... d/1"}
    now = (copy / "d").lstat()
    assert now.st_mode & 0o777 == 0o701
    assert (copy / "l").lstat().st_mtime_ns == 10**17
    assert (copy / "").lstat().st_mtime_ns == 10**17
    assert now.st_mtime_ns > 2 * 10**17
    assert {item.split()[0] for item in run_sync(source, copy, way=way).items} == {
        ".d..t......",
        ".L..t......",
    }
