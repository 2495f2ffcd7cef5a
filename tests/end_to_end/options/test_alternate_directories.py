"""--link-dest, --compare-dest and --copy-dest: files that another directory has already."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.model.options import Alternates, AlternateUse
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from tests.support.running.beside_rsync import certain, rdc, rsync, settled, without_now
from tests.support.running.forced_command import forced
from tests.support.running.killed_sync import steps_of
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.old_or_new import check_old_or_new
from tests.support.trees.tree_strategies import edited, pairs, plain_trees
from tests.support.trees.trees import (
    Directory,
    File,
    Link,
    Tree,
    describe,
    litter,
    read_tree,
    tree,
    write_tree,
)

LARGE = bytes(range(256)) * 1200
WANTED = tree(
    {
        "same": b"unchanged",
        "large": LARGE,
        "mode": File(b"its mode alone", 0o755),
        "time": File(b"its time alone", 0o644, 5),
        "edited": LARGE[:200_000] + b"edit" + LARGE[200_000:],
        "d/same": b"unchanged, too",
        "d/link": Link(b"same"),
        "new": b"nobody has it",
    }
)
ELSEWHERE = tree(
    {
        "same": b"unchanged",
        "large": LARGE,
        "mode": File(b"its mode alone", 0o600),
        "time": File(b"its time alone", 0o644, 7),
        "edited": File(LARGE, 0o644, 9),
        "d/same": b"unchanged, too",
        "d/link": Link(b"same"),
        "gone": b"the source no longer has it",
    }
)
SAME = (b"same", b"large", b"d/same")


def alternates(use: AlternateUse, *directories: str) -> Alternates:
    return Alternates(use, tuple(map(os.fsencode, directories)))


def linked(top: Path, other: Path) -> set[bytes]:
    """The paths of files that are the same file in both trees."""

    def inode(path: str) -> tuple[int, int] | None:
        with suppress(OSError):
            found = os.lstat(path)
            return found.st_dev, found.st_ino
        return None

    files = [path for path, node in read_tree(top).items() if isinstance(node, File)]
    return {
        path
        for path in files
        if inode(os.path.join(top, os.fsdecode(path))) == inode(os.path.join(other, os.fsdecode(path)))
    }


@pytest.mark.parametrize("checksum", [False, True], ids=["", "checksum"])
@pytest.mark.parametrize("use", AlternateUse)
@pytest.mark.parametrize("way", Way)
def test_each_side_finds_what_is_unchanged(
    way: Way, use: AlternateUse, checksum: bool, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    elsewhere = write_tree(tmp_path / "old", ELSEWHERE)
    options = SyncOptions(fsync=False, checksum=checksum, alternates=alternates(use, "../none", "../old"))
    run = run_sync(source, tmp_path / "d", options, way=way)
    assert run.done.exit == ExitCode.OK
    assert run.problems == []
    assert any("../none" in event.message for event in run.events if isinstance(event, Problem))
    found = read_tree(tmp_path / "d")
    left_out = {*SAME, b"d/link"} if use is AlternateUse.COMPARE else set()
    assert describe({path: node for path, node in WANTED.items() if path not in left_out}, found) == []
    assert linked(tmp_path / "d", elsewhere) == (set(SAME) if use is AlternateUse.LINK else set())
    assert describe(ELSEWHERE, read_tree(elsewhere)) == []
    # The edited file comes from its base, and of the others only those that nobody has.
    assert run.done.literal_bytes < 5_000
    planned = SyncOptions(dry_run=True, alternates=alternates(use, "../old"))
    rehearsed = run_sync(source, tmp_path / "d2", planned)
    assert "cf...p..... mode" in rehearsed.items
    assert not (tmp_path / "d2").exists()


def test_the_first_directory_that_has_it_all_is_taken(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    one, two = (write_tree(tmp_path / name, ELSEWHERE) for name in ("one", "two"))
    (one / "same").chmod(0o600)
    run_sync(
        source, tmp_path / "d", SyncOptions(alternates=alternates(AlternateUse.LINK, "../one", "../two"))
    )
    assert linked(tmp_path / "d", one) == set(SAME) - {b"same"}
    assert linked(tmp_path / "d", two) == {b"same"}


@pytest.mark.needs("rsync")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pairs(plain_trees()).flatmap(lambda pair: st.tuples(st.just(pair), edited(pair[0]), edited(pair[1]))),
    st.sampled_from(list(AlternateUse)),
    st.booleans(),
    st.sampled_from(([], ["--delete"], ["--size-only"], ["--existing"], ["-u"])),
)
def test_the_trees_and_plans_are_rsync_s(
    trees: tuple[tuple[Tree, Tree], Tree, Tree], use: AlternateUse, fresh: bool, more: list[str]
) -> None:
    """But for hard links of symlinks, which rdc makes anew, and for directories that are symlinks elsewhere:
    rsync follows them."""
    (wanted, held), first, second = trees
    directories = {path for path, node in wanted.items() if isinstance(node, Directory)}
    # Such a file is fetched, when the directory has gone.
    assume(all(path in directories for path in wanted if isinstance(held.get(path), Directory)))
    assume(not any(isinstance(other.get(path), Link) for path in directories for other in (first, second)))
    held = {b"": held[b""]} if fresh else held
    name = f"--{use.value}-dest"
    words = [f"{name}=../first", f"{name}=../second", *more]
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as place:
        top = Path(place)
        for program in ("theirs", "ours"):
            (top / program).mkdir()
            for part, content in (("source", wanted), ("first", first), ("second", second), ("top", held)):
                write_tree(top / program / part, content)
        theirs, ours = top / "theirs", top / "ours"
        where = [[f"{each}/source/", f"{each}/top/"] for each in (theirs, ours)]
        planned = certain(rsync("-n", "-i", *words, *where[0]), words)
        assert settled(certain(rdc("-n", "-i", *words, *where[1]), words)) == settled(planned)
        assert describe(held, read_tree(ours / "top")) == []
        done = rsync("-i", *words, *where[0])
        assert settled(rdc("-i", *words, *where[1])) == settled(done)
        expected, found = (without_now(read_tree(each / "top")) for each in (theirs, ours))
        assert describe(expected, found) == []
        for part in ("first", "second"):
            assert describe(read_tree(theirs / part), read_tree(ours / part)) == []
            assert linked(ours / "top", ours / part) == linked(theirs / "top", theirs / part)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--link-dest=a", "--copy-dest=b"], "--copy-dest and --link-dest exclude each other"),
        (["--link-dest=a", "--inplace"], "--inplace and --link-dest exclude each other"),
        (["--compare-dest="], "--compare-dest needs a directory"),
        ([f"--link-dest={number}" for number in range(21)], "21 directories, the limit is 20"),
    ],
)
def test_a_wrong_mix_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    ended = command("sync", *words, f"{source}/", f"{tmp_path}/d/")
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert said in ended.err
    assert not (tmp_path / "d").exists()


def test_a_watch_refuses_them(tmp_path: Path) -> None:
    ended = command("watch", "--link-dest=old", f"{tmp_path}/", f"{tmp_path}/d")
    assert ended.code == ExitCode.USAGE
    assert "--link-dest" in ended.err


@pytest.mark.parametrize("use", AlternateUse)
def test_the_destination_itself_has_nothing_to_offer(use: AlternateUse, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "d", WANTED)
    run = run_sync(source, top, SyncOptions(alternates=alternates(use, ".", "../d")))
    assert run.done.changed == 0
    assert describe(WANTED, read_tree(top)) == []


def test_metadata_of_another_tree_never_change(tmp_path: Path) -> None:
    """A link shares them. What differs in anything, an attribute included, becomes a copy."""
    source, elsewhere = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "old", ELSEWHERE)
    os.setxattr(source / "same", "user.mark", b"new")
    os.setxattr(source / "large", "user.mark", b"equal")
    os.setxattr(elsewhere / "large", "user.mark", b"equal")
    os.setxattr(elsewhere / "d/same", "user.mark", b"old")
    options = SyncOptions(xattrs=True, alternates=alternates(AlternateUse.LINK, "../old"))
    run = run_sync(source, tmp_path / "d", options)
    assert run.problems == []
    assert linked(tmp_path / "d", elsewhere) == {b"large"}
    assert os.getxattr(tmp_path / "d/same", "user.mark") == b"new"
    assert os.listxattr(tmp_path / "d/d/same") == []
    assert os.listxattr(elsewhere / "same") == []
    assert os.getxattr(elsewhere / "d/same", "user.mark") == b"old"


def test_hard_links_of_the_source_stay_one_file(tmp_path: Path) -> None:
    source, elsewhere = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "old", ELSEWHERE)
    for name in ("a", "z"):
        os.link(source / "same", source / name)
    options = SyncOptions(hard_links=True, alternates=alternates(AlternateUse.COPY, "../old"))
    assert run_sync(source, tmp_path / "copy", options).problems == []
    options = SyncOptions(hard_links=True, alternates=alternates(AlternateUse.LINK, "../old"))
    assert run_sync(source, tmp_path / "link", options).problems == []
    for top in (tmp_path / "copy", tmp_path / "link"):
        assert all((top / "same").samefile(top / name) for name in ("a", "z"))
    assert describe(ELSEWHERE, read_tree(elsewhere)) == []


@pytest.mark.parametrize(
    ("key", "word", "code", "names"),
    [
        ("", "--link-dest=../old", 0, 2),
        ("", "--link-dest=/old", 0, 2),
        ("--append-only", "--link-dest=../old", 0, 2),
        ("", "--copy-dest=../old", 0, 1),
        ("", "--link-dest=../../old", 5, None),
        ("", "--compare-dest=../x/../../old", 5, None),
        ("", "--link-dest=../link", 0, 1),
        ("--no-delete", "--compare-dest=../old", 5, None),
        ("--append-only", "--compare-dest=../old", 5, None),
        ("--read-only", "--link-dest=../old", 5, None),
    ],
)
def test_a_confined_peer_uses_what_lies_below_its_root_alone(
    key: str, word: str, code: int, names: int | None, tmp_path: Path
) -> None:
    source, outside = write_tree(tmp_path / "s", WANTED), write_tree(tmp_path / "old", ELSEWHERE)
    root = tmp_path / "root"
    for name in ("root", "outside"):
        (tmp_path / name).mkdir()
    write_tree(root / "old", ELSEWHERE)
    os.symlink("../old", root / "link")
    served = forced(tmp_path, f"--root={root}", *key.split())
    ended = command("sync", "--no-catalog", "-e", served, word, f"{source}/", "h:d/")
    assert ended.code == code, ended.err
    if names is None:
        assert "--compare-dest" in ended.err or "leads out of" in ended.err or "read-only" in ended.err
        assert not (root / "d/same").exists()
    else:
        assert describe(WANTED, read_tree(root / "d")) == []
        assert (root / "d/same").stat().st_nlink == names
    assert all((outside / os.fsdecode(path)).stat().st_nlink == 1 for path in SAME)


@dataclass(frozen=True, slots=True)
class _Killed:
    """A sync for `steps_of`: a destination that has some of the files already."""

    place: Path
    use: AlternateUse

    @property
    def said(self) -> Path:
        return self.place / "said"

    @property
    def top(self) -> Path:
        return self.place / "d"

    def sync(self, *, fsync: bool) -> None:
        options = SyncOptions(fsync=fsync, delete=True, alternates=alternates(self.use, "../old"))
        run = run_sync(self.place / "s", self.top, options)
        assert run.problems == [], run.problems


HELD = tree(
    {
        "same": b"unchanged",
        "large": File(LARGE[:5000], 0o600, 1),
        "d": Link(b"was a link"),
        "mode": File(b"its mode alone", 0o755, 3),
    }
)


@pytest.mark.parametrize("use", [AlternateUse.LINK, AlternateUse.COPY])
def test_a_kill_before_every_step(use: AlternateUse, tmp_path: Path) -> None:
    write_tree(tmp_path / "s", WANTED)
    write_tree(tmp_path / "old", ELSEWHERE)
    killed, top = _Killed(tmp_path, use), tmp_path / "d"

    def renew() -> None:
        shutil.rmtree(top, ignore_errors=True)
        write_tree(top, HELD)

    renew()
    steps = steps_of(killed, fsync=True)
    assert steps > 20
    for step in range(0, steps, 3):
        renew()
        steps_of(killed, fsync=True, stop_at=step)
        check_old_or_new(read_tree(top), HELD, WANTED, killed=True)
        assert describe(ELSEWHERE, read_tree(tmp_path / "old")) == []
        killed.sync(fsync=False)
        assert describe(WANTED, read_tree(top)) == []
        assert litter(read_tree(top)) == []


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("option", ["--link-dest", "--compare-dest", "--copy-dest"])
@pytest.mark.parametrize(
    "words",
    [("s/d", "s/same"), ("-R", "s/./d/same", "s/./new"), ("s/", "t"), ("--files-from=list", "s")],
)
def test_several_sources_find_what_is_elsewhere_as_with_rsync(
    option: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path / "s", WANTED)
    write_tree(tmp_path / "t", tree({"same": b"of t"}))
    elsewhere = write_tree(tmp_path / "elsewhere", ELSEWHERE)
    shutil.copytree(elsewhere, elsewhere / "t")
    (tmp_path / "list").write_text("d/same\nlarge\nnew\n")
    left = {}
    for tool, where in ((rsync, "theirs"), (rdc, "ours")):
        (tmp_path / where).mkdir()
        os.utime(tmp_path / where, (5, 5))
        code, _ = tool(f"{option}=../elsewhere", *words, f"{where}/")
        assert code == 0
        found = read_tree(tmp_path / where)
        del found[b""]
        left[where] = found, linked(tmp_path / where, elsewhere)
    assert describe(left["theirs"][0], left["ours"][0]) == []
    assert left["ours"][1] == left["theirs"][1]


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("use", AlternateUse)
def test_special_files_and_times_of_directories(use: AlternateUse, tmp_path: Path) -> None:
    """An entry that equals one elsewhere is not named, and --compare-dest leaves it out, as in rsync."""
    for top in ("s", "old"):
        (tmp_path / top / "d").mkdir(parents=True)
        for name in ("same", "other"):
            os.mkfifo(tmp_path / top / name, 0o600)
            os.utime(tmp_path / top / name, (1, 1))
        os.utime(tmp_path / top / "d", (2, 2 if top == "s" else 3))
        os.utime(tmp_path / top, (1, 1))
    (tmp_path / "old/other").chmod(0o644)
    words = [f"--{use.value}-dest=../old", f"{tmp_path}/s/"]
    code, lines = rsync("-i", *words, f"{tmp_path}/theirs/")
    assert lines == ["cSc..p..... other", "cd..t...... d/"]
    assert rdc("-i", *words, f"{tmp_path}/ours/") == (code, lines)
    # With -O rsync names a time that it does not set.
    assert rdc("-n", "-i", "-O", *words, f"{tmp_path}/timeless/") == (code, lines[:1])
    assert os.path.exists(tmp_path / "ours/same") == (use is not AlternateUse.COMPARE)
    assert sorted(os.listdir(tmp_path / "ours")) == sorted(os.listdir(tmp_path / "theirs"))


@pytest.mark.parametrize("held", [File(b"old work", 0o600, 3), Link(b"old")])
def test_what_a_link_replaces_is_backed_up(held: File | Link, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"f": File(b"new", 0o600, 5)}))
    shutil.copytree(source, tmp_path / "old")
    write_tree(tmp_path / "d", tree({"f": held}))
    ended = command("sync", "--no-catalog", "-b", "--link-dest=../old", f"{source}/", f"{tmp_path}/d/")
    assert ended.code == 0
    assert linked(tmp_path / "d", tmp_path / "old") == {b"f"}
    assert read_tree(tmp_path / "d")[b"f~"] == held
