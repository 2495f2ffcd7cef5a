"""Measures what each part of the transfer wins: bytes on the wire with and without it.

Command: .venv/bin/python -m bench.ablation [--runs=3] [--part=NAME]... OLD NEW...

Each part is switched off at its one decision, at both ends, and the pairs of bench/wire.py run again.
The table has the bytes of rdc as it is. For each part it has how many percent more a sync without it sends,
and how much CPU that takes, as a ratio of medians. Lines are those of the part's modules.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import wire
from bench.harness import TOP, arguments, scratch

NOTHING = "nothing"
"""Switches off no part."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the transfer. `switch_off` runs before a session, in the process of each end."""

    name: str
    switch_off: Callable[[], None]
    modules: tuple[str, ...]
    """Globs below rdc/ of the files that only this part needs."""

    @property
    def lines(self) -> int:
        files = {path for glob in self.modules for path in (TOP / "rdc").glob(glob)}
        return sum(len(path.read_text().splitlines()) for path in files if path.suffix in {".py", ".c", ".h"})


def _without_similarity() -> None:
    from rdc.session.transfer.renames import SimilarBases

    made = SimilarBases.bases
    # Without traits; bases that a name suggests stay.
    SimilarBases.bases = lambda self, file, entry, traits, coarse: made(self, file, entry, b"", b"")  # type: ignore[method-assign] # the part that is left out


def _without_moves() -> None:
    from rdc.session.transfer import renames

    renames.LocalContent._likely_origin = lambda self, entry: None  # type: ignore[method-assign] # the part that is left out
    renames.SimilarBases.may_have = lambda self, entry: False  # type: ignore[method-assign] # the part that is left out


def _without_bundles() -> None:
    from rdc.session.transfer import bundle as bundles

    bundles.BUNDLE_FILES_LEAST = 1 << 30  # type: ignore[attr-defined] # the part that is left out


def _without_blocks() -> None:
    from rdc.session.transfer.compare import Gaps

    _without_bundles()  # which are matched by blocks
    Gaps.requests = lambda self: []  # type: ignore[method-assign] # the part that is left out


def _without_masking() -> None:
    from rdc.session import binaries

    binaries.looks_like = lambda source: False
    binaries.encode_branches = lambda content, offsets: False


def _without_tables() -> None:
    from rdc.session import binaries

    binaries.encode_table = lambda content, offsets: 0


def _without_check_blocks() -> None:
    from rdc.protocol.messages.field_types import NO_CLAIMS
    from rdc.session.transfer import bundle, range_requests

    made = range_requests._claims_and_masks
    # Masked displacements come with the answers to claims, so these stay.
    range_requests._claims_and_masks = lambda recipe, context, room: (
        made(recipe, context, room) if recipe.masked else (NO_CLAIMS, [])
    )
    bundle._check_blocks = lambda copies: []


def _without_context() -> None:
    from rdc.session.transfer import bundle, range_requests

    range_requests._worth_packing_with = lambda recipe, ranges, claimed: array("Q")
    bundle.KNOWN_PER_PACKED = 1 << 60  # type: ignore[attr-defined] # the part that is left out


PARTS = (
    Part("similarity", _without_similarity, ("session/transfer/renames.py",)),
    Part("moves", _without_moves, ("session/transfer/renames.py",)),
    Part("sub-chunk search", _without_blocks, ("plan/search.py", "plan/gap_search.py",
        "plan/compare.py", "session/transfer/bundle.py", "session/source/range_answers.py",
        "kernel/search/*")),
    Part("bundles", _without_bundles, ("plan/compare.py", "session/transfer/bundle.py",
        "session/source/range_answers.py")),
    Part("x86 masking", _without_masking, ("session/binaries.py", "kernel/x86/*")),
    Part("number tables", _without_tables, ("kernel/columns/word_*",)),
    Part("check blocks", _without_check_blocks, ("plan/check_blocks.py",)),
    Part("literal context", _without_context, ("plan/check_blocks.py",)),
)  # fmt: skip


def run_without(name: str, words: list[str]) -> None:
    """rdc itself, in this process, without the part of this name."""
    if name != NOTHING:
        next(part for part in PARTS if part.name == name).switch_off()
    from rdc.cli.main import entry

    sys.argv = ["rdc", *words]
    entry()


def main() -> None:
    parser = arguments(__doc__, runs=3)
    parser.add_argument("trees", nargs="+", type=Path, metavar="OLD NEW")
    parser.add_argument(
        "--part", action="append", choices=[part.name for part in PARTS], help="only this one"
    )
    parser.add_argument("--mtimes", choices=("kept", "fresh"), help="only these")
    parser.add_argument("--scratch", type=Path, help="where the copies go (default: a temporary directory)")
    given = parser.parse_args()
    if len(given.trees) % 2:
        parser.error("trees come in pairs: OLD NEW")
    parts = [part for part in PARTS if not given.part or part.name in given.part]
    mtimes = (given.mtimes,) if given.mtimes else ("kept", "fresh")
    print(
        f"{'pair':34} {'mtimes':7} {'without':18} {'wire':>12} {'more':>8} {'CPU':>6} {'lines':>6}",
        flush=True,
    )
    # A program of several words: bench.wire splits it, and so does --remote-path.
    launcher = f"{sys.executable} -m bench.ablation"
    with scratch(given.scratch) as top:
        for old, new in zip(given.trees[::2], given.trees[1::2], strict=True):
            for how in mtimes:
                whole: wire.Row | None = None
                for part in (None, *parts):
                    name = part.name.replace(" ", "_") if part else NOTHING
                    wire.RDC = f"{launcher} --without={name}"
                    row = wire.compare(old.resolve(), new.resolve(), top, ["rdc"], (how,), given.runs, False)[
                        0
                    ]
                    whole = whole or row
                    more = row.wire / whole.wire - 1
                    ratio = row.cpu_seconds / whole.cpu_seconds
                    print(
                        f"{row.pair:34} {how:7} {part.name if part else '(nothing)':18} {row.wire:12,}"
                        f" {more + 0:8.1%} {ratio:6.2f} {part.lines if part else '':>6}",
                        flush=True,
                    )


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--without="):
        run_without(sys.argv[1].removeprefix("--without=").replace("_", " "), sys.argv[2:])
    else:
        main()
