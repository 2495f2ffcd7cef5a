"""rsync itself as the reference: same inputs, same trees, same `-n -i` lines.

Intended differences, which are therefore not compared:
- a file of equal content and another mtime is `.f..t......` to rdc, which finds the content equal, and
  `>f..t......` to rsync, which sends it;
- rdc prints deletions last and contents as they arrive, rsync in the order of the tree;
- a single entry that gets another name is shown by that name to rdc, by the source's to rsync;
- an odd byte is \\x0a to rdc and \\#012 to rsync;
- rdc compares mtimes to the nanosecond, rsync does so with --modify-window=-1, and with -u never;
- with rules that protect, rsync -n says that it deletes directories which then stay, since something excluded
  is in them;
- rdc does not empty a destination for an empty source without --force-empty.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.running.beside_rsync import check, rdc, rsync, settled, without_now
from tests.support.share import examples, share
from tests.support.trees.tree_strategies import pairs, plain_trees
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

pytestmark = pytest.mark.needs("rsync")

OTHER_TIME = 1_300_000_000_000_000_000


RULES = (
    "--exclude=a",
    "--exclude=/a",
    "--exclude=b/",
    "--exclude=a/b",
    "--exclude=a-*",
    "--exclude=/a/**",
    "--exclude=*",
    "--include=a",
    "--include=*/",
    "--include=b/***",
    "--filter=- .h",
    "--filter=+ /c/*",
)

COARSE = 4 * 10**9
"""Nanoseconds: newer by less than two seconds is not newer to rsync -u --modify-window=-1."""

NARROWING = ("-u", "--existing", "--ignore-existing", "--size-only", "--max-size=2", "--min-size=2")


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pairs(plain_trees()), st.sets(st.sampled_from(("--delete", "-c"))).map(sorted))
def test_random_trees(pair: tuple[Tree, Tree], words: list[str]) -> None:
    check(*pair, *words)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pairs(plain_trees()),
    st.sets(st.sampled_from(NARROWING), min_size=1, max_size=2),
    st.sets(st.sampled_from(("--delete", "-c"))),
)
def test_what_is_left_alone(pair: tuple[Tree, Tree], words: set[str], more: set[str]) -> None:
    wanted, held = (
        {path: replace(node, mtime_ns=node.mtime_ns // COARSE * COARSE) for path, node in found.items()}
        for found in pair
    )
    if "--ignore-existing" in words:
        # rsync fails below a directory whose place something else keeps; rdc leaves out what is below.
        blocked = [p for p, node in wanted.items() if isinstance(node, Directory)]
        assume(all(isinstance(held.get(p, node), Directory) for p, node in wanted.items() if p in blocked))
    check(wanted, held, *sorted(words | more))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pairs(plain_trees()),
    st.lists(st.sampled_from(RULES), min_size=1, max_size=4),
    st.sampled_from(("", "--delete", "--delete-excluded")),
)
def test_rules_hide_and_protect(pair: tuple[Tree, Tree], rules: list[str], delete: str) -> None:
    check(*pair, *rules, *([delete] if delete else []))


SOURCE = tree(
    {
        "src/f": b"file",
        "src/d/g": b"another",
        "src/d/below/h": b"deep",
        "src/l": Link(b"f"),
        "src/dl": Link(b"d"),
        "src/dangling": Link(b"nowhere"),
        "src/empty": Directory(0o700),
    }
)
DESTINATION = tree(
    {
        "dst/f": File(b"older", 0o600, OTHER_TIME),
        "dst/own": b"only here",
        "dst/src/f": File(b"older", 0o600, OTHER_TIME),
        "dst/src/d/extra": b"only here",
        "to_dir": Link(b"dst"),
        "to_file": Link(b"dst/own"),
        "to_nothing": Link(b"nowhere"),
        "plain": File(b"in the way", 0o640, OTHER_TIME),
    }
)
SOURCES = "src src/ src/. src// ./src src/f src/l src/d src/d/ src/d/.. src/dl src/dl/ src/dangling"
DESTINATIONS = "dst dst/ new new/ dst/f dst/fresh to_dir to_dir/ to_file to_nothing plain missing/new ."


@pytest.mark.parametrize(
    ("source", "destination"), share(list(itertools.product(SOURCES.split(), DESTINATIONS.split())))
)
def test_where_things_go(
    source: str, destination: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trailing slash, single files and links, and destinations of every kind."""
    results = []
    for program in (rsync, rdc):
        place = write_tree(tmp_path / program.__name__, SOURCE | DESTINATION)
        monkeypatch.chdir(place)
        rehearsed = program("-n", "-i", source, destination)
        assert describe(SOURCE | DESTINATION, read_tree(place)) == []
        code, lines = settled(program("-i", source, destination))
        if len(lines) == 1 and not lines[0].endswith("/"):
            lines = [re.sub(r"(?<=^.{12})\S+", "NAME", lines[0])]
            rehearsed = (rehearsed[0], [re.sub(r"(?<=^.{12})\S+", "NAME", line) for line in rehearsed[1]])
        # Of a run that fails only the fact is compared: the codes are another test's.
        results.append(((rehearsed if not code else []), bool(code), lines, without_now(read_tree(place))))
    assert describe(results[0][3], results[1][3]) == []
    assert results[0][:3] == results[1][:3]
