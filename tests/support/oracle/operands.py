"""The operands that both programs are given: the contents of SRC, several paths of it, or a list of them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.support.trees.trees import Directory, Tree

__all__ = ["CONTENTS", "Operands", "operands"]


@dataclass(frozen=True, slots=True)
class Operands:
    words: tuple[str, ...] = ()
    """Options that belong to them."""
    paths: tuple[str, ...] = ("",)
    """SRC operands below the source."""
    listed: tuple[str, ...] | None = None
    """Lines of the file of --files-from."""


CONTENTS = Operands()


@st.composite
def operands(draw: st.DrawFn, tree: Tree) -> Operands:
    """Several SRC, -R, or --files-from, with paths of `tree`; sometimes one that is missing."""
    inner = sorted(os.fsdecode(path) for path in tree if path) or ["none"]
    ends = st.just("") | st.just("/")
    directories = {os.fsdecode(path) for path, node in tree.items() if isinstance(node, Directory)}

    def path() -> str:
        found = draw(st.sampled_from(inner))
        return found + draw(ends) if found in directories else found

    ignoring = draw(st.sampled_from(((), (), ("--delete-missing-args",), ("--ignore-missing-args",))))
    if not directories - {""} and len(inner) < 2:
        ignoring = ()  # one missing SRC alone is an error
    paths = [path() for _ in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 5)) == 0:
        paths.append("missing")
    way = draw(st.sampled_from(("several", "relative", "listed")))
    if way == "several":
        return Operands(ignoring, (*paths, *draw(st.sampled_from(([], [""])))))
    if way == "relative":
        words = draw(st.sampled_from((("-R",), ("-R", "--no-implied-dirs"))))
        return Operands((*words, *ignoring), tuple(f"./{one}" for one in paths))
    words = draw(st.sampled_from(((), ("-r",), ("--no-relative",), ("-0",), ("-r", "--no-implied-dirs"))))
    return Operands((*words, *ignoring), ("",), (*paths, "# comment"))
