"""Filter rules decide as rsync's do: against a matcher that is plainly right, and against rsync itself."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from rdc.errors import UsageError
from rdc.limits import FILTER_BYTES, FILTER_PATTERN_BYTES, FILTER_RULES, FILTER_WILD_BYTES
from rdc.model.selection import FilterRule, RuleAction, RuleModifiers
from rdc.tree import filter_list
from rdc.tree.filters import FilterList, RuleMatcher
from rdc.tree.rule_text import RuleListBuilder
from tests.support.share import examples

EXCLUDE, INCLUDE = RuleAction.EXCLUDE, RuleAction.INCLUDE


def no_files(name: str) -> bytes:
    raise AssertionError(f"{name} must not be read")


def excluding(*patterns: bytes) -> FilterList:
    return FilterList([FilterRule(EXCLUDE, pattern) for pattern in patterns])


# (pattern, what it excludes, what it does not); a path that ends in '/' is a directory.
CASES = [
    (b"a", [b"a", b"a/", b"x/a"], [b"ab", b"a/x", b"xa"]),
    (b"/a", [b"a", b"a/"], [b"x/a"]),
    (b"a/", [b"a/", b"x/a/"], [b"a", b"x/a"]),
    (b"a/b", [b"a/b", b"x/a/b"], [b"b", b"xa/b", b"a/b/c"]),
    (b"/a/b/", [b"a/b/"], [b"a/b", b"x/a/b/"]),
    (b"*.o", [b"x.o", b".o", b"d/x.o"], [b"x.oo", b"x.o/y"]),
    (b"*", [b"a", b"a/b"], []),
    (b"a*b", [b"ab", b"axb", b"d/axxb"], [b"a/b"]),
    (b"a/*/b", [b"a/x/b", b"y/a/x/b"], [b"a/b", b"a/x/y/b"]),
    (b"a/**/b", [b"a/x/b", b"a/x/y/b", b"z/a/x/b"], [b"a/b"]),
    (b"a**b", [b"ab", b"a/b", b"x/a/y/b"], [b"xab", b"b"]),
    (b"**/a", [b"a", b"x/a", b"x/y/a"], [b"xa"]),
    (b"**a", [b"a", b"xa", b"x/ya"], [b"ab"]),
    (b"/**/a", [b"x/a", b"x/y/a"], [b"a"]),
    (b"a/***", [b"a/", b"a/x", b"a/x/y", b"y/a/"], [b"a"]),
    (b"a/**", [b"a/x", b"a/x/y/"], [b"a", b"a/"]),
    (b"?", [b"a", b"d/a"], [b"ab"]),
    (b"a?b", [b"axb"], [b"a/b", b"ab"]),
    (b"[a-c]", [b"a", b"c"], [b"d", b"-"]),
    (b"[!a]", [b"b", b"]"], [b"a"]),
    (b"[]-]", [b"]", b"-"], [b"a"]),
    (b"[[:digit:]x]", [b"0", b"x"], [b"a", b":"]),
    (b"[[:nope:]]", [], [b"n", b":"]),
    (b"a[", [], [b"a["]),
    (b"[a", [], [b"a", b"[a"]),
    (b"\\*", [b"*"], [b"a", b"\\*"]),
    (b"a\\b", [b"a\\b"], [b"ab"]),
    (b"a\\b*", [b"ab", b"abc"], [b"a\\b"]),
    (b"*\\", [], [b"x\\", b"x"]),
    (b"\n*", [b"\nx"], [b"x"]),
    (b"\xff?", [b"\xff\xfe"], [b"\xff"]),
    (b"/", [], [b"a", b"a/"]),
]


@pytest.mark.parametrize(("pattern", "out", "kept"), CASES)
def test_one_pattern(pattern: bytes, out: list[bytes], kept: list[bytes]) -> None:
    rules = excluding(pattern)
    decided = [p for p in [*out, *kept] if rules.excluded(p.rstrip(b"/"), p.endswith(b"/"))]
    assert decided == out


def test_first_match_decides_across_literals_and_wildcards() -> None:
    rules = FilterList(
        [
            FilterRule(INCLUDE, b"keep.o"),
            FilterRule(EXCLUDE, b"*.o"),
            FilterRule(INCLUDE, b"x.o"),
            FilterRule(EXCLUDE, b"/d/"),
            FilterRule(INCLUDE, b"d"),
            FilterRule(EXCLUDE, b"*"),
        ]
    )
    assert not rules.excluded(b"keep.o", False)
    assert rules.excluded(b"x.o", False)
    assert rules.excluded(b"d", True)
    assert not rules.excluded(b"d", False)
    assert not rules.excluded(b"e/d", True)
    assert rules.excluded(b"e", True)
    assert not rules.excluded(b"", True)


def test_no_rules_exclude_nothing() -> None:
    assert not FilterList([]).excluded(b"a", False)


# Any matcher that backtracks into the stars would still be at the first of these when the sun goes out.
HOSTILE = [
    b"a*" * 60 + b"b",
    b"*a" * 60 + b"b",
    b"a**" * 60 + b"b",
    b"**a*a*a*a*a*a*b**c",
    b"**/" * 60 + b"b",
    b"*/" * 60 + b"**" + b"*a" * 60 + b"/b",
    b"[ab]*" * 60 + b"c",
    b"**" + b"?*" * 60 + b"/**b",
    b"a*" * (FILTER_PATTERN_BYTES // 2),
]


@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("prefix", [b"", b"/"])
def test_hostile_patterns_end(pattern: bytes, prefix: bytes) -> None:
    rules = excluding((prefix + pattern)[:FILTER_PATTERN_BYTES])
    for path in (b"a" * 4000, b"a/" * 2000 + b"x", (b"a" * 255 + b"/") * 15 + b"x", b"ab/" * 1300 + b"x"):
        assert not rules.excluded(path, False) or pattern.endswith(b"a*")


# --- rsync itself -------------------------------------------------------------------------------------------

PIECES = [
    b"a",
    b"a",
    b"b",
    b"c",
    b".",
    b"*",
    b"*",
    b"**",
    b"***",
    b"?",
    b"/",
    b"/",
    b"[ab]",
    b"[!a]",
    b"[^b]",
]
PIECES += [
    b"[a-b]",
    b"[]a]",
    b"\\a",
    b"\\*",
    b"[[:alpha:]]",
    b"[-c]",
    b"[a-]",
    b"[[:punct:]a]",
    b"[",
    b"[\\]b]",
]
PIECES += [b"[b-a]", b"[a/b]", b"[:a]", b"[[:x:]", b"[[:]", b"[.-\\b]"]


def grow_tree(root: bytes, rng: random.Random) -> list[tuple[bytes, bool]]:
    """A small tree below `root`; its paths, and whether each is a directory."""
    paths = []

    def fill(directory: bytes, depth: int) -> None:
        for _ in range(rng.randint(2, 4)):
            name = bytes(rng.choice(b"aab.c-]") for _ in range(rng.randint(1, 3)))
            path = directory + name
            if name in (b".", b"..") or os.path.lexists(root + b"/" + path):
                continue
            if depth < 3 and rng.random() < 0.6:
                os.mkdir(root + b"/" + path)
                paths.append((path, True))
                fill(path + b"/", depth + 1)
            else:
                Path(os.fsdecode(root + b"/" + path)).touch()
                paths.append((path, False))

    fill(b"", 0)
    return paths


def make_rule(paths: list[tuple[bytes, bool]], rng: random.Random) -> FilterRule:
    if paths and rng.random() < 0.3:
        names = rng.choice(paths)[0].split(b"/")
        pattern = b"/".join(names[rng.randrange(len(names)) :])
    else:
        pattern = b"".join(rng.choice(PIECES) for _ in range(rng.randint(1, 5)))
    pattern = rng.choice([b"", b"", b"", b"/"]) + pattern + rng.choice([b"", b"", b"", b"", b"/", b"/***"])
    return FilterRule(rng.choice([EXCLUDE, EXCLUDE, INCLUDE]), pattern)


def taken_by_rsync(root: bytes, options: Iterable[bytes]) -> set[bytes]:
    argv = [b"rsync", b"-rn", b"-8", b"--out-format=%n", *options, root + b"/", root + b".absent/"]
    lines = subprocess.run(argv, capture_output=True, check=True).stdout.split(b"\n")
    names = {line.removesuffix(b"/") for line in lines if not line.startswith(b"created directory ")}
    return names - {b"", b"."}


def taken_by_rdc(paths: list[tuple[bytes, bool]], rules: FilterList) -> set[bytes]:
    taken: set[bytes] = set()
    # A parent comes before its children in the list; what is below an excluded one is never reached.
    for path, is_directory in paths:
        parent = path.rpartition(b"/")[0]
        if (not parent or parent in taken) and not rules.excluded(path, is_directory):
            taken.add(path)
    return taken


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("seed", range(examples(6)))
def test_decides_as_rsync_does(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    root = os.fsencode(tmp_path / "tree")
    os.mkdir(root)
    paths = grow_tree(root, rng)
    filtered = 0
    for _ in range(40):
        rules = [make_rule(paths, rng) for _ in range(rng.randint(1, 3))]
        expected = taken_by_rsync(
            root, [b"--filter=%s %s" % (r.action.value.encode(), r.pattern) for r in rules]
        )
        assert taken_by_rdc(paths, FilterList(rules)) == expected, rules
        filtered += len(expected) < len(paths)
    assert filtered > 5  # otherwise nothing was compared


RULE_FILE = b"; comment\n# comment\n\n+ keep.o\n*.o\r\n- sub/\n!\n+ a.o\n  spaced\n*.o\n"


@pytest.mark.needs("rsync")
def test_rule_files_read_as_rsync_reads_them(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    names = ["a.o", "b.o", "keep.o", "; comment", "# comment", "  spaced", "spaced", "!", "sub"]
    for name in names:
        (root / name).touch()
    (tmp_path / "rules").write_bytes(RULE_FILE)
    for option, action in ((b"--exclude-from=", EXCLUDE), (b"--include-from=", INCLUDE)):
        builder = RuleListBuilder(no_files)
        builder.add_lines(RULE_FILE, action, name="rules")
        builder.add_pattern(b"b*", EXCLUDE)
        rules = filter_list(builder.rules())
        expected = taken_by_rsync(
            os.fsencode(root), [option + os.fsencode(tmp_path / "rules"), b"--exclude=b*"]
        )
        assert {n.encode() for n in names if not rules.excluded(n.encode(), False)} == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"- *.o", FilterRule(EXCLUDE, b"*.o")),
        (b"+ a b", FilterRule(INCLUDE, b"a b")),
        (b"-_x", FilterRule(EXCLUDE, b"x")),
        (b"exclude x", FilterRule(EXCLUDE, b"x")),
        (b"include_x", FilterRule(INCLUDE, b"x")),
        (b"-  x", FilterRule(EXCLUDE, b" x")),
    ],
)
def test_filter_forms(text: bytes, rule: FilterRule) -> None:
    builder = RuleListBuilder(no_files)
    builder.add_filter(text)
    assert builder.rules() == (rule,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"merge", "names no file"),
        (b".", "names no file"),
        (b".! f", "no modifier '!'"),
        (b"-n f", "no modifier 'n'"),
        (b"Ps f", "no modifier 's'"),
        (b"-x user.a", "extended attributes"),
        (b"-C x", "takes no pattern"),
        (b".-+ f", "exclude each other"),
        (b"merge-x f", "not a filter rule"),
        (b"dir-merge", "names no file"),
        (b": a/b", "expected the name of a file in each directory"),
        (b": /", "expected the name of a file in each directory"),
        (b"protect", "no pattern"),
        (b"-,x", "extended attributes"),
        (b"- ", "no pattern"),
        (b"+", "no pattern"),
        (b"*.o", "not a filter rule"),
        (b"", "not a filter rule"),
        (b"! x", "nothing may follow"),
    ],
)
def test_other_filter_rules_fail_by_name(text: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        RuleListBuilder(no_files).add_filter(text)
    assert words in str(caught.value)


def test_clearing() -> None:
    for clear in (b"!", b"clear"):
        builder = RuleListBuilder(no_files)
        builder.add_pattern(b"a", EXCLUDE)
        builder.add_filter(clear)
        builder.add_pattern(b"- b", INCLUDE)
        builder.add_pattern(b"", EXCLUDE)
        assert builder.rules() == (FilterRule(EXCLUDE, b"b"),)


def test_bounds_hold_before_anything_is_compiled() -> None:
    too_many = [FilterRule(EXCLUDE, b"a")] * (FILTER_RULES + 1)
    too_much = [FilterRule(EXCLUDE, b"a" * FILTER_PATTERN_BYTES)] * (FILTER_BYTES // FILTER_PATTERN_BYTES + 1)
    too_long = [FilterRule(EXCLUDE, b"a" * (FILTER_PATTERN_BYTES + 1))]
    for rules in (too_many, too_much, too_long, [FilterRule(EXCLUDE, b"")]):
        with pytest.raises(UsageError):
            FilterList(rules)
    with pytest.raises(UsageError, match="list of patterns"):
        RuleListBuilder(no_files).add_lines(b"\0" * (FILTER_PATTERN_BYTES + 3), EXCLUDE, name="f")


@pytest.mark.parametrize(
    "rule",
    [
        FilterRule(EXCLUDE, b"*.oo.o.o"),
        FilterRule(EXCLUDE, b"a.oo.o.o", RuleModifiers(negated=True)),
        FilterRule(EXCLUDE, b"/.oo.o.o", RuleModifiers(absolute=True)),
    ],
)
def test_rules_with_wildcards_are_bounded(rule: FilterRule) -> None:
    most = FILTER_WILD_BYTES // 9
    RuleMatcher([rule] * most)
    with pytest.raises(UsageError, match=f"{FILTER_WILD_BYTES:,} are the most"):
        RuleMatcher([rule] * (most + 1))


def test_many_rules_take_memory_in_proportion() -> None:
    """Patterns of which every byte is another: the automaton has a row for each byte that a path has."""
    from rdc.kernel import PatternSet

    rng = random.Random(1)
    patterns = [bytes(rng.choices(range(1, 256), k=255)) for _ in range(FILTER_WILD_BYTES // 256)]
    rules = PatternSet([b"*" + pattern for pattern in patterns], bytes(len(patterns)))
    for byte in range(1, 256):
        rules.first(bytes((byte, 65)), False)
    assert sys.getsizeof(rules) < 64 << 20
