"""Rules of every kind, and rule files in the directories of both trees, decide as rsync's do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings

from rdc.errors import ExitCode, ProtocolError
from rdc.model.selection import DirectoryRules, FilterRule, RuleAction, RuleModifiers, RuleSide
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role
from rdc.tree.directory_filters import UnboundFilters
from rdc.tree.filters import FilterList
from tests.support.oracle.cases import Case
from tests.support.oracle.filter_cases import filter_cases, filter_differences
from tests.support.running.paired_sync import sync_in_turns
from tests.support.running.syncing import command
from tests.support.trees.trees import Directory, File, Tree, read_tree, write_tree


@pytest.mark.needs("rsync")
@settings(max_examples=12)
@given(filter_cases())
def test_trees_and_lines_are_those_of_rsync(case: Case) -> None:
    assert not filter_differences(case), case.words


def synced(top: Path, source: Tree, destination: Tree, *words: str) -> tuple[int, str, set[str]]:
    """The exit code, stderr, and what is at the destination."""
    write_tree(top / "source", source)
    write_tree(top / "copy", destination)
    ended = command("sync", "--no-catalog", "--no-fsync", *words, f"{top}/source/", f"{top}/copy/")
    found = {str(path.relative_to(top / "copy")) for path in (top / "copy").rglob("*")}
    return ended.code, ended.err, found


TOP: Tree = {b"": Directory(), b"a": Directory()}


@pytest.mark.parametrize("text", [b"- x\nQ y\n", b"-q x\n", b". /etc/passwd\n", b". missing\n", b"- \n"])
@pytest.mark.parametrize("far", ["source", "copy"])
def test_a_mistake_in_a_rule_file_is_one_line_and_nothing_under_it_is_deleted(
    far: str, text: bytes, tmp_path: Path
) -> None:
    broken = {**TOP, b"a/.f": File(text), b"a/x": File(b"1")}
    other = {**TOP, b"a/mine": File(b"2"), b"gone": File(b"3")}
    trees = (
        (broken, other) if far == "source" else ({**TOP, b"a/x": File(b"1")}, {**other, b"a/.f": File(text)})
    )
    code, said, found = synced(tmp_path, *trees, "--delete", "--filter=: .f")
    assert code == ExitCode.PARTIAL
    assert "a/mine" in found
    lines = [line for line in said.splitlines() if ".f: " in line]
    assert len(lines) == 1
    assert "line 2" in lines[0] or "line 1" in lines[0] or "merge" in lines[0]
    # At the source what cannot be read looks deleted, so nothing is deleted anywhere.
    assert ("gone" in found) is (far == "source")


@pytest.mark.parametrize("far", ["source", "copy"])
def test_a_rule_file_that_is_no_plain_file_leaves_its_directory_alone(far: str, tmp_path: Path) -> None:
    odd = {**TOP, b"a/.f": Directory(), b"a/x": File(b"1")}
    other = {**TOP, b"a/mine": File(b"2")}
    trees = (odd, other) if far == "source" else (other, odd)
    code, said, found = synced(tmp_path, *trees, "--delete", "--filter=: .f")
    assert code == ExitCode.PARTIAL
    assert "expected a regular file" in said
    assert {"a/x", "a/mine"} & found == ({"a/mine"} if far == "source" else {"a/x", "a/mine"})


def test_a_file_that_moved_away_still_protects(tmp_path: Path) -> None:
    """The rule file of a directory that was renamed is copied: without it, what it protects would go."""
    rules = File(b"- keep\n" * 2000)
    source: Tree = {b"": Directory(), b"new": Directory(), b"new/.f": rules}
    destination: Tree = {b"": Directory(), b"old": Directory(), b"old/.f": rules, b"old/keep": File(b"1")}
    code, _, found = synced(tmp_path, source, destination, "--delete", "--filter=: .f")
    assert code == ExitCode.OK
    assert {"old/keep", "new/.f"} <= found


def test_rules_of_the_directories_above(tmp_path: Path) -> None:
    (tmp_path / ".rsync-filter").write_bytes(b"- x\n- /source/y\n")
    source: Tree = {**TOP, b"a/x": File(b"1"), b"y": File(b"1"), b"z": File(b"1")}
    _, _, found = synced(tmp_path, source, {b"": Directory()}, "-F")
    assert found == {"a", "z"}


def test_a_cache_keeps_only_its_tag(tmp_path: Path) -> None:
    tag = File(b"Signature: 8a477f597d28d172789f06886806bc55\n# a cache\n")
    source: Tree = {
        **TOP,
        b"a/CACHEDIR.TAG": tag,
        b"a/x": File(b"1"),
        b"a/in": Directory(),
        b"a/in/x": File(b"1"),
        b"b": Directory(),
        b"b/CACHEDIR.TAG": File(b"Signature: none"),
        b"b/x": File(b"1"),
    }
    destination: Tree = {**TOP, b"a/CACHEDIR.TAG": tag, b"a/old": File(b"1")}
    code, _, found = synced(tmp_path, source, destination, "--exclude-caches", "--delete")
    assert code == ExitCode.OK
    assert found == {"a", "a/CACHEDIR.TAG", "a/old", "b", "b/CACHEDIR.TAG", "b/x"}


@pytest.mark.parametrize(("option", "stays"), [("--delete", False), ("--delete-after", True)])
def test_rules_that_arrive_protect_at_once_with_delete_after(
    option: str, stays: bool, tmp_path: Path
) -> None:
    source: Tree = {**TOP, b"a/.f": File(b"P mine\n")}
    code, _, found = synced(tmp_path, source, {**TOP, b"a/mine": File(b"2")}, option, "--filter=: .f")
    assert code == ExitCode.OK
    assert ("a/mine" in found) is stays


def test_old_rules_protect_though_their_file_goes(tmp_path: Path) -> None:
    destination: Tree = {**TOP, b"a/.f": File(b"- mine\n"), b"a/b": Directory(), b"a/b/mine": File(b"2")}
    for number, option in enumerate(("--delete", "--delete-after")):
        top = tmp_path / str(number)
        top.mkdir()
        code, _, found = synced(top, TOP, destination, option, "--filter=: .f")
        assert code == ExitCode.OK
        assert found == {"a", "a/b", "a/b/mine"}


@pytest.mark.parametrize("words", [("--ignore-errors", "-F"), ("--filter=-x user.a",), ("--filter=: a/b",)])
def test_wrong_mixes_change_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    code, said, found = synced(tmp_path, {**TOP, b"x": File(b"1")}, {b"": Directory()}, "--delete", *words)
    assert code == ExitCode.USAGE
    assert len(said.splitlines()) == 1
    assert not found


def test_one_place_with_rules_for_one_side_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path / "source", {**TOP, b"x": File(b"1")})
    same = f"{tmp_path}/source/"
    ended = command("sync", "--no-catalog", "--delete", "--filter=H x", same, same)
    assert ended.code == ExitCode.USAGE
    assert (tmp_path / "source" / "x").exists()


def test_the_name_of_a_directory_is_no_wildcard(tmp_path: Path) -> None:
    source: Tree = {
        b"": Directory(),
        b"d[1]": Directory(),
        b"d[1]/.f": File(b"- /x\n- /*.o\n"),
        b"d[1]/x": File(b"1"),
        b"d[1]/a.o": File(b"1"),
        b"d1": Directory(),
        b"d1/x": File(b"1"),
    }
    _, _, found = synced(tmp_path, source, {b"": Directory()}, "--filter=: .f")
    assert found == {"d[1]", "d[1]/.f", "d1", "d1/x"}


SOURCE: Tree = {
    **TOP,
    b"a/.f": File(b"- x\nP *.keep\n"),
    b"a/x": File(b"1"),
    b"a/y": File(b"1"),
    b"h": File(b"1"),
}
HERE: Tree = {
    **TOP,
    b"a/.f": File(b"- *.keep\n"),
    b"a/1.keep": File(b"2"),
    b"a/x": File(b"2"),
    b"h": File(b"2"),
}
RULES = (
    FilterRule(RuleAction.EXCLUDE, b"h", RuleModifiers(RuleSide.SOURCE)),
    DirectoryRules(b".f"),
)


@pytest.mark.parametrize("dialler", list(Role))
def test_each_side_reads_its_own_files_whoever_dials(dialler: Role, tmp_path: Path) -> None:
    write_tree(tmp_path / "source", SOURCE)
    write_tree(tmp_path / "here", HERE)
    options = SyncOptions(delete=True, fsync=False, rules=RULES)
    sync_in_turns(tmp_path / "source", tmp_path / "here", options, dialler=dialler)
    assert set(read_tree(tmp_path / "here")) == {b"", b"a", b"a/.f", b"a/1.keep", b"a/y"}


def test_a_source_that_tells_what_a_rule_hides_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules before the first per-directory one hold, whatever the source's files say."""
    write_tree(tmp_path / "source", SOURCE)
    write_tree(tmp_path / "here", HERE)
    monkeypatch.setattr(UnboundFilters, "at_source", lambda self, tree: FilterList(()))
    with pytest.raises(ProtocolError, match="which a filter rule leaves out"):
        sync_in_turns(
            tmp_path / "source", tmp_path / "here", SyncOptions(delete=True, fsync=False, rules=RULES)
        )
    assert read_tree(tmp_path / "here")[b"h"] == HERE[b"h"]


def test_a_check_names_the_mistake_of_either_end(tmp_path: Path) -> None:
    bad: Tree = {**TOP, b"a/.f": File(b"bogus\n")}
    write_tree(tmp_path / "source", bad)
    write_tree(tmp_path / "copy", bad)
    ended = command("check", "--filter=: .f", f"{tmp_path}/source/", f"{tmp_path}/copy/")
    assert ended.code == ExitCode.PARTIAL
    assert "source/a/.f: line 1" in ended.err
    assert "copy/a/.f: line 1" in ended.err


SELECTED: Tree = {
    b"": Directory(),
    b".f": File(b"- top\n"),
    b"a": Directory(),
    b"a/.f": File(b"- x\n"),
    b"a/b": Directory(),
    b"a/b/x": File(b"1"),
    b"a/b/top": File(b"1"),
    b"c": Directory(),
    b"c/x": File(b"1"),
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(("a/b", "c"), {"b", "b/x", "b/top", "c", "c/x"}, id="not the files above SRC"),
        pytest.param(
            ("-R", "a/b/x", "a/b/top"), {"a", "a/b", "a/b/top"}, id="those on the way of a kept path"
        ),
        pytest.param(("a", "c"), {"a", "a/.f", "a/b", "a/b/top", "c", "c/x"}, id="those below SRC"),
        pytest.param((".", "c"), {".f", "a", "a/.f", "a/b", "c", "c/x"}, id="those of SRC itself"),
    ],
)
def test_rule_files_count_in_what_several_sources_name(
    words: tuple[str, ...], found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path / "source", SELECTED)
    monkeypatch.chdir(tmp_path / "source")
    ended = command("sync", "--no-catalog", "--no-fsync", "--filter=: .f", *words, "../copy/")
    assert ended.code == 0, ended.err
    assert {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")} == found


def test_rules_about_absolute_paths_know_where_several_sources_are(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", {b"": Directory(), b"x": File(b"1"), b"y": File(b"1")})
    write_tree(tmp_path / "two", {b"": Directory(), b"z": File(b"1"), b"v": File(b"1")})
    rules = (
        f"--filter=-/ {tmp_path}/one/x",
        f"--filter=-/ {tmp_path}/two/z",
        f"--filter=-/ {tmp_path}/one/v",
    )
    ended = command(
        "sync",
        "--no-catalog",
        "--no-fsync",
        *rules,
        f"{tmp_path}/one/",
        f"{tmp_path}/two/",
        f"{tmp_path}/copy/",
    )
    assert ended.code == 0
    assert sorted(os.listdir(tmp_path / "copy")) == ["v", "y"]


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("deletion", ["--delete", "--delete-excluded"])
@pytest.mark.parametrize("rule", [": .g", ":e .g", ":- .g"])
@pytest.mark.parametrize("text", [b":e .g\n", b":e .h\n", b":es .h\n"])
def test_what_leaves_itself_out_stays_as_with_rsync(
    text: bytes, rule: str, deletion: str, tmp_path: Path
) -> None:
    """A rule file of the tree protects what it leaves out so, also with --delete-excluded."""
    held: Tree = {**TOP, b"a/.g": File(text), b"a/.h": File(b"- q\n"), b"a/x": File(b"1")}
    words = (deletion, f"--filter={rule}")
    code, _, found = synced(tmp_path, {b"": Directory(), b"b": File(b"")}, held, *words)
    peer = write_tree(tmp_path / "peer", held)
    subprocess.run(
        ["rsync", "-a", *words, f"{tmp_path}/source/", f"{peer}/"], check=True, capture_output=True
    )
    assert found == {str(path.relative_to(peer)) for path in peer.rglob("*")}
    assert code == 0
