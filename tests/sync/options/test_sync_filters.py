"""Rules of every kind, and rule files in the directories of both trees, decide as rsync's do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

from rdc.errors import ExitCode
from tests.support.oracle.cases import Case, run_case
from tests.support.oracle.filter_cases import filter_cases
from tests.support.oracle.intended import adjusted
from tests.support.running.syncing import command
from tests.support.trees.trees import Directory, File, Tree, write_tree


def apart(case: Case) -> list[str]:
    """How rdc differs from rsync. rsync -n also names directories that then stay."""
    theirs, ours = (adjusted(case, outcome) for outcome in run_case(case))
    if theirs.code in {1, 2, 11}:
        # A mistake in a rule ends rsync. rdc names it; in a rule file it leaves its directory alone.
        assert ours.code and ours.code == ours.planned_code, (theirs.said, ours.said)
        return []
    planned = (Counter(theirs.plan) - Counter(ours.plan)).elements()
    said = [f"-n: rsync alone: {line}" for line in planned if not _is_directory_deletion(line)]
    said += [f"-n: rdc alone: {line}" for line in (Counter(ours.plan) - Counter(theirs.plan)).elements()]
    said += [f"{theirs.lines} is not {ours.lines}"] if theirs.lines != ours.lines else []
    paths = {path for path in {*theirs.tree, *ours.tree} if theirs.tree.get(path) != ours.tree.get(path)}
    said += [f"{path!r}: {theirs.tree.get(path)} is not {ours.tree.get(path)}" for path in sorted(paths)]
    return (
        [*said, f"{theirs.code}, {ours.code}", theirs.said, ours.said]
        if said or theirs.code != ours.code
        else []
    )


def _is_directory_deletion(line: str) -> bool:
    return line.startswith("*deleting ") and line.endswith("/")


@settings(max_examples=12)
@given(filter_cases())
def test_trees_and_lines_are_those_of_rsync(case: Case) -> None:
    assert not apart(case), case.words


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
