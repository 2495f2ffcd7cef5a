"""Random cases about filters: trees with rule files in their directories, and lists of rules."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from hypothesis import strategies as st

from tests.support.oracle.cases import Case, SilentRsyncError, run_case
from tests.support.oracle.comparable import comparable
from tests.support.oracle.comparison import unlike
from tests.support.oracle.operands import operands
from tests.support.oracle.scenes import Scene, Side
from tests.support.trees.trees import Directory, File, Tree

__all__ = ["filter_cases", "filter_differences"]

DIRECTORIES = (b"a", b"b", b"a/a", b"a/b", b"a/b/c", b"d", b"d/a")
NAMES = (b"x", b"y", b"x.o", b"n~", b"z")
RULE_FILES = (b".f", b".g", b".rsync-filter", b".cvsignore")
PATTERNS = (
    "x", "y", "*.o", "/x", "/a", "/a/", "a/", "b/x", "a/b", "b/***", "/b/***", "**/x", "a/**", "*", "*/",
    "[xy]", "/a/b/x", "n~", "z", "c", "?", "/*.o", ".f", "d*", "/a*/**/x", "b**",
)  # fmt: skip
PREFIXES = (
    "-", "+", "-", "+", "P", "R", "H", "S", "-s", "-r", "+r", "+s", "-!", "-p", "-sr", "-rp", "Pp", "+!",
    "exclude", "protect", "show,p", "-/",
)  # fmt: skip
FILES = (
    ": .f", ":e .f", ":n .f", ":- .f", ":+ .f", ":w- .f", ":s .f", ":r- .f", ":C", ":p .f", ":C .f",
    "dir-merge .f", ":-p .f", ":n- .g", ": .g", ":sr .g",
)  # fmt: skip
MISTAKES = frozenset((1, 2, 11))
"""Exit codes of rsync where it does not understand a rule."""
DELETIONS = ("--delete", "--delete", "--delete-excluded", "--delete-during", "--delete-after", "")


rules = st.builds("{} {}".format, st.sampled_from(PREFIXES), st.sampled_from(PATTERNS))
lines = st.one_of(rules, rules, st.sampled_from(("!", "# no", "", *PATTERNS[:4], ": .g", ":n- .g", ":e .g")))
texts = st.one_of(
    st.lists(rules, min_size=1, max_size=3),
    st.lists(rules, min_size=1, max_size=3),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
    st.lists(lines, min_size=1, max_size=3),
).map(lambda found: "\n".join(found).encode() + b"\n")


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A tree in which each directory may have rule files."""
    tree: Tree = {b"": Directory(0o755, 10**9)}
    for path in DIRECTORIES:
        above = path.rpartition(b"/")[0]
        if above in tree and draw(st.integers(0, 3)):
            tree[path] = Directory(0o755, 10**9)
    for directory in sorted(tree):
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True)):
            tree[os.path.join(directory, name)] = File(b"1", 0o644, draw(st.integers(1, 2)) * 10**9)
        if draw(st.integers(0, 2)) == 0:
            for name in draw(st.lists(st.sampled_from(RULE_FILES), max_size=2, unique=True)):
                stamp = draw(st.integers(1, 2)) * 10**9
                tree[os.path.join(directory, name)] = File(draw(texts), 0o644, stamp)
    return tree


@st.composite
def filter_cases(draw: st.DrawFn) -> Case:
    """A case whose options are about filters and deletions alone, and sometimes about what is taken."""
    words = [
        f"--filter={rule}" for rule in draw(st.lists(st.one_of(rules, st.sampled_from(FILES)), max_size=4))
    ]
    words += draw(st.lists(st.sampled_from(("-F", "-FF", "-C", "--exclude=z", "--include=x")), max_size=2))
    words = [*draw(st.permutations(words)), draw(st.sampled_from(DELETIONS))]
    source = draw(trees())
    destination = draw(st.one_of(trees(), st.just(source)))
    case = Case(Scene(Side(source), Side(destination)), tuple(word for word in words if word))
    taken = replace(case, operands=draw(operands(source))) if draw(st.booleans()) else case
    return taken if comparable(taken) else case


def filter_differences(case: Case) -> list[str]:
    """Return how rdc differs from rsync, apart from intended differences."""
    try:
        outcomes = run_case(case)
    except SilentRsyncError:
        return []
    theirs, ours = outcomes
    if theirs.planned_code in MISTAKES and theirs.code not in MISTAKES:
        # The run with --delete-after reads other rule files than -n: those that it puts there.
        theirs = replace(theirs, planned_code=ours.planned_code, plan=ours.plan)
    if theirs.code in MISTAKES:
        # A mistake in a rule ends rsync. rdc names it; in a rule file it leaves its directory alone.
        # With --delete-after, rule files count that only the run itself puts there.
        # Where both sides are equal, rdc looks for nothing to delete, and reads no rules about it.
        if not (ours.code or ours.lines or ours.plan):
            return []
        named = ours.code and (ours.code == ours.planned_code or "--delete-after" in case.words)
        if named or _has_no_say(case, theirs.said):
            return []
        return [f"rsync said: {theirs.said}", f"rdc ended with {ours.code}: {ours.said}"]
    return unlike(case, theirs, ours)


def _has_no_say(case: Case, said: str) -> bool:
    """Return whether rsync complains of a rule file that hides nothing, and that rdc does not read: of a
    listed directory that is not entered; or at DST above what -R takes, where nothing is deleted, in a
    directory of which SRC has all, or where its rules are for SRC alone."""
    of_source = any(re.match(r"--filter=:[a-z]*s", word) for word in case.words)
    if case.operands.listed is not None or (of_source and "/_rsync/" in said):
        return True
    at_destination = re.search(r"/_rsync/(.*)/[^/]* line ", said)
    if at_destination is None:
        return False
    within = f"{at_destination[1]}/"
    above = any(path.startswith(f"./{within}") for path in case.operands.paths)
    extraneous = case.scene.destination.tree.keys() - case.scene.source.tree.keys()
    return above or not any(path.startswith(os.fsencode(within)) for path in extraneous)
