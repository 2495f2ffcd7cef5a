"""Random cases about --link-dest, --compare-dest and --copy-dest: earlier copies beside DST."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.oracle.cases import Case
from tests.support.oracle.comparable import ALTERNATES
from tests.support.oracle.options import SHARED, option_words
from tests.support.oracle.scenes import Scene, carried, scenes, sides
from tests.support.trees.tree_strategies import edited

__all__ = ["alternate_cases"]


@st.composite
def alternate_cases(draw: st.DrawFn) -> Case:
    """A case with one or two alternate trees, each what SRC or DST could have been."""
    scene = draw(scenes(specials=True))
    others = []
    for _ in range(draw(st.integers(1, 2))):
        of = draw(st.sampled_from((scene.source, scene.source, scene.destination)))
        other = draw(sides(draw(edited(of.tree)), specials=False))
        others.append(carried(scene.source, other) if draw(st.booleans()) else other)
    option = draw(st.sampled_from(sorted(ALTERNATES)))
    words = [f"{option}=../alternate{number}" for number in range(len(others))]
    return Case(Scene(scene.source, scene.destination, tuple(others)), (*words, *draw(option_words(SHARED))))
