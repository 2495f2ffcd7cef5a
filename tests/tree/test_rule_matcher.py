"""Rules of all kinds together decide as the rules one by one do, by the definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.model.selection import FilterRule, RuleAction, RuleModifiers
from rdc.tree.filters import RuleMatcher
from tests.reference import patterns as reference
from tests.support.share import examples

PIECES = [
    b"a", b"a", b"b", b"ab", b"c", b"*", b"*", b"**", b"***", b"?", b"/", b"/", b"/", b"[ab]", b"[!a]",
    b"[a/b]", b"\\a", b"\\", b"[", b"**/", b"/**/", b"/***",
]  # fmt: skip
NAMES = st.sampled_from([b"a", b"b", b"ab", b"c", b"ba", b"a*", b"\\a", b"[ab]"])
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(b"/".join)
PATTERNS = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map(b"".join),
    PATHS,
    PATHS.map(lambda path: b"/" + path),
    st.lists(NAMES | st.sampled_from([b"*", b"**", b"a*"]), min_size=1, max_size=4).map(b"/".join),
)
RULES = st.lists(
    st.builds(
        FilterRule,
        st.sampled_from([*RuleAction]),
        st.tuples(PATTERNS, st.sampled_from([b"", b"", b"", b"/"])).map(b"".join),
        st.builds(
            RuleModifiers,
            negated=st.sampled_from([False, False, False, True]),
            absolute=st.sampled_from([False, False, False, True]),
        ),
    ),
    max_size=10,
)


def plainly_wild(pattern: bytes) -> bool:
    return any(code in b"*?[" for code in pattern)


def escaped(text: bytes) -> bytes:
    return b"".join(b"\\" + bytes([code]) if code in b"\\*?[" else bytes([code]) for code in text)


def matches_text(pattern: bytes, text: bytes, is_directory: bool) -> bool:
    """Return whether one pattern matches, by the rules of rsync(1)."""
    if len(pattern) > 1 and pattern.endswith(b"/"):
        if not is_directory:
            return False
        pattern = pattern[:-1]
    names = text.split(b"/")
    starts = [b"/".join(names[at:]) for at in range(len(names))]
    anchored = pattern.startswith(b"/")
    if not plainly_wild(pattern):
        return pattern[1:] == text if anchored else pattern in starts
    kind = reference.INSIDE if pattern.endswith(b"***") else 0
    if anchored:
        starts, pattern = [text], pattern[1:]
    elif pattern.startswith(b"**"):
        if pattern.lstrip(b"*").startswith(b"/"):
            pattern = pattern.lstrip(b"*")[1:]
        else:
            starts = [text]
    elif b"**" not in pattern:
        starts = [each for each in starts if each.count(b"/") == pattern.count(b"/")]
    return any(
        reference.PatternSet((pattern,), bytes((kind,))).first(each, is_directory) == 0 for each in starts
    )


def decision(
    rules: Sequence[FilterRule],
    path: bytes,
    is_directory: bool,
    base: bytes,
    real: Callable[[bytes], bytes],
    at: bytes,
    from_top: bool,
) -> bool | None:
    prefix = base.strip(b"/") + b"/" if base.strip(b"/") else b""
    for rule in rules:
        pattern, absolute = rule.pattern, rule.modifiers.absolute
        if pattern.startswith(b"/") and not absolute:
            absolute = from_top
            if at:
                own = pattern if plainly_wild(pattern) else escaped(pattern)
                pattern = b"/" + (escaped(at) + own if plainly_wild(at + pattern) else at + pattern)
        absolute &= b"/" in pattern[:-1] or b"**" in pattern
        text = prefix + real(path) if absolute else path
        if matches_text(pattern, text, is_directory) is not rule.modifiers.negated:
            return rule.action is RuleAction.EXCLUDE
    return None


@settings(max_examples=examples(1200), deadline=None)
@given(
    RULES,
    st.lists(st.tuples(PATHS, st.booleans()), min_size=1, max_size=6),
    st.sampled_from([b"/", b"/a", b"/a/b", b"/a*/c"]),
    st.booleans(),
    st.sampled_from([b"", b"", b"a", b"a/b", b"a*"]),
    st.booleans(),
)
def test_all_rules_at_once_decide_as_one_by_one(
    rules: list[FilterRule],
    paths: list[tuple[bytes, bool]],
    base: bytes,
    moves: bool,
    at: bytes,
    from_top: bool,
) -> None:
    """`at`: the rules are those of a directory, of the tree or, with `from_top`, above it. `moves`: entries
    are elsewhere than the tree shows them."""
    if from_top and at and not (base.strip(b"/") + b"/").startswith(at + b"/"):
        at = base.strip(b"/")

    def real(path: bytes) -> bytes:
        return b"b/" + path if moves else path

    made = RuleMatcher(rules, base=base, real=real if moves else None, at=at, from_top=from_top)
    for path, is_directory in paths:
        # A file of rules is asked about what is below it.
        below = at + b"/" + path if at and not from_top else path
        wanted = decision(rules, below, is_directory, base, real, at, from_top)
        assert made.decision(below, is_directory) == wanted, below
