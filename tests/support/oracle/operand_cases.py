"""Random cases about what of SRC is taken: several paths of it, -R, or a list."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support.oracle.cases import Case
from tests.support.oracle.operands import operands
from tests.support.oracle.options import option_words
from tests.support.oracle.scenes import scenes

__all__ = ["operand_cases"]


@st.composite
def operand_cases(draw: st.DrawFn) -> Case:
    scene = draw(scenes(specials=True))
    return Case(scene, draw(option_words()), draw(operands(scene.source.tree)))
