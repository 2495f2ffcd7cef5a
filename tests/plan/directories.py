"""Strategies for directories to compare."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from rdc.tree.manifest import Entry
from tests.support.trees.manifests import randoms, some_entry, touched


@st.composite
def directories(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """What is wanted and what is held, one directory each, mostly the same."""
    rng = draw(randoms)
    names = [b"%02d" % i for i in range(draw(st.sampled_from((0, 1, 5, 40))))]
    wanted = {name: some_entry(rng, name) for name in names}
    existing = dict(wanted)
    for name in names:
        match rng.randrange(draw(st.sampled_from((5, 6, 40)))):
            case 0 | 1:
                existing[name] = touched(rng, wanted[name])
            case 2:
                existing[name] = some_entry(rng, name)
            case 3:
                existing[name] = replace(wanted[name], target=b"elsewhere")
            case 4 if draw(st.booleans()):
                del (existing if rng.random() < 0.5 else wanted)[name]
    return [wanted[name] for name in sorted(wanted)], [existing[name] for name in sorted(existing)]
