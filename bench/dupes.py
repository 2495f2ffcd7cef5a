"""Measures the search for identical files, and compares its results with those of other tools.

Question:  does `rdc dupes` find the same groups as the other tools, and at what CPU, time and memory?
Metrics:   cpu: user and system seconds; wall: seconds; memory: largest resident size. Medians of runs in
           turns, after one run of each tool that is not counted, so that all read from the page cache. same:
           whether the groups of a tool, each file by its inode, equal those of rdc.
Beside:    jdupes -r (compares bytes) and jdupes -r -Q (compares digests of 64 bits only); rdfind -dryrun
           (SHA-1); fdupes -r (MD5, then bytes); rmlint (BLAKE2b, hidden files too). Empty files are left out.
           Names of one inode count once.
Corpora:   the trees given as arguments.
Commands:  .venv/bin/python -m bench.dupes TREE [TREE ...] [--runs 5] [--skip fdupes] [--json]
           (Debian: apt-get install jdupes rdfind fdupes rmlint; the output names tools that are missing)
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.harness import RDC, Cost, Table, arguments, in_turns, medians, run, scratch

DUPES = (*RDC, "dupes", "--no-catalog")

Groups = set[frozenset[int]]
"""Groups of identical files, each file by its inode number."""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    words: Callable[[str, Path], list[str]]
    """Makes the command from the tree and a directory for files that the tool always writes."""
    groups: Callable[[bytes, Path], Groups]
    """Reads the groups from the tool's output and from that directory."""


def by_inode(names: list[bytes]) -> frozenset[int]:
    return frozenset(os.stat(name).st_ino for name in names)


def blank_line_groups(out: bytes, _: Path) -> Groups:
    return several(by_inode(group.split(b"\n")) for group in out.strip(b"\n").split(b"\n\n") if group)


def null_groups(out: bytes, _: Path) -> Groups:
    return several(by_inode(group.split(b"\0")) for group in out.split(b"\0\0") if group)


def rdfind_groups(_: bytes, place: Path) -> Groups:
    found: dict[bytes, list[bytes]] = {}
    for line in (place / "results").read_bytes().splitlines():
        if not line.startswith(b"#"):
            _, number, _, _, _, _, _, name = line.split(b" ", 7)
            found.setdefault(number.lstrip(b"-"), []).append(name)
    return several(map(by_inode, found.values()))


def rmlint_groups(_: bytes, place: Path) -> Groups:
    found: dict[str, list[bytes]] = {}
    with (place / "rmlint.csv").open(newline="", errors="surrogateescape") as file:
        for row in csv.DictReader(file):
            if row["type"] == "duplicate_file":
                found.setdefault(row["checksum"] + row["size"], []).append(os.fsencode(row["path"]))
    return several(map(by_inode, found.values()))


def several(groups: object) -> Groups:
    return {group for group in groups if len(group) > 1}  # type: ignore[attr-defined] # sets of names


TOOLS = (
    Tool("rdc", lambda tree, _: [*DUPES, "-0", tree], null_groups),
    Tool("jdupes", lambda tree, _: ["jdupes", "-r", "-q", tree], blank_line_groups),
    Tool("jdupes -Q", lambda tree, _: ["jdupes", "-r", "-q", "-Q", tree], blank_line_groups),
    Tool(
        "rdfind",
        lambda tree, place: ["rdfind", "-dryrun", "true", "-outputname", str(place / "results"), tree],
        rdfind_groups,
    ),
    Tool("fdupes", lambda tree, _: ["fdupes", "-r", "-q", "-n", tree], blank_line_groups),
    Tool(
        "rmlint",
        lambda tree, place: [
            "rmlint", "-T", "df", "--hidden", "--no-hardlinked", "-o", f"csv:{place / 'rmlint.csv'}", tree,
        ],
        rmlint_groups,
    ),
)  # fmt: skip


def measure(tool: Tool, tree: str) -> Cost:
    with scratch() as place:
        return run(tool.words(tree, place), cwd=place, accept=(0, 1))


def groups_of(tool: Tool, tree: str) -> Groups:
    with scratch() as place:
        run(tool.words(tree, place), cwd=place, accept=(0, 1), out=place / "out")
        return tool.groups((place / "out").read_bytes(), place)


def main() -> None:
    parser = arguments(__doc__, runs=5)
    parser.add_argument("trees", nargs="+", metavar="TREE")
    parser.add_argument(
        "--skip", action="append", default=[], metavar="TOOL", help="leave out one that takes long"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tools = [
        tool for tool in TOOLS if shutil.which(tool.words("", Path())[0]) and tool.name not in given.skip
    ]
    missing = sorted({tool.name for tool in TOOLS} - {tool.name for tool in tools})
    table = None
    if not given.json:
        print(f"{given.runs} runs in turns; not measured: {', '.join(missing) or 'none'}")
        table = Table("tree", "tool", "groups", "same", "cpu, s", "wall, s", "memory, MB")
    for tree in given.trees:
        compare(tree, tools, given.runs, table)


def compare(tree: str, tools: list[Tool], runs: int, table: Table | None) -> None:
    found = {tool.name: groups_of(tool, tree) for tool in tools}
    costs = in_turns({tool.name: partial(measure, tool, tree) for tool in tools}, runs)
    for tool in tools:
        cost, groups = medians(costs[tool.name]), found[tool.name]
        differing = len(groups ^ found["rdc"])
        if table is None:
            row = {"tree": tree, "tool": tool.name, "groups": len(groups), "differing": differing}
            print(json.dumps({**row, **asdict(cost)}), flush=True)
            continue
        same = "yes" if not differing else f"{differing} differ"
        table.row(
            *(tree, tool.name, f"{len(groups):,}", same, f"{cost.cpu:.2f}", f"{cost.wall:.2f}"),
            f"{cost.memory / 1e6:.0f}",
        )


if __name__ == "__main__":
    main()
