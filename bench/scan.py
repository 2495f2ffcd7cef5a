"""Measures a scan, beside tools that answer a part of its questions.

Question:  what does one scan cost? It reports identical files, savings of chunks at three granularities,
           compression and the directories with duplicates. Beside it run tools that only find identical
           files, and backup tools, whose first backup shows the savings at one granularity. Do all agree
           where they answer the same question?
Metrics:   cpu: user and system seconds; wall: seconds; memory: the largest process. Medians of interleaved
           runs, after one that is not counted, so that files come from the page cache. Duplicate files (not
           empty ones) and their bytes as each tool reports them; bytes of unique chunks, plain and
           compressed. Memory below that of this script (40 MB) is not resolved.
Beside:    jdupes, rdfind, fdupes, rmlint (files); duperemove (blocks of 128 KiB, read-only); restic and borg
           (a first backup into a scratch repository, which they also write; restic encrypts it). The output
           names tools that are missing.
Corpora:   the trees given as arguments; --small: N files of 0 to 8 KiB; --big: one file of N GiB
           of random bytes. Both are seeded and made in --place.
Commands:  .venv/bin/python -m bench.scan TREE... [--runs 3] [--json FILE]
           .venv/bin/python -m bench.scan --small 20000 --big 2 --place /dev/shm --only rdc
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from bench import harness
from bench.harness import RDC, Table, arguments, big_file, in_turns, machine, medians, scratch, small_files


@dataclass(frozen=True, slots=True)
class Answer:
    """The figures that a tool reports. None: it does not report that figure."""

    duplicate_files: int | None = None
    """Files beyond the first of each group of identical ones, without empty files."""
    duplicate_bytes: int | None = None
    kept: int | None = None
    """The bytes of unique chunks."""
    compressed: int | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    words: Callable[[Path, Path], list[str]]
    """Makes the command from the tree and an empty scratch directory."""
    answer: Callable[[str], Answer]
    """Reads the answer from the tool's output."""
    before: Callable[[Path], list[str]] | None = None
    """Makes the repository of a backup tool; not measured."""


@dataclass(slots=True)
class Result:
    tool: str
    tree: str
    cpu: float = 0.0
    wall: float = 0.0
    memory: int = 0
    answer: Answer = field(default_factory=Answer)


def number(text: str) -> int:
    return int(re.sub(r"[,.\s]", "", text))


def scaled(value: str, unit: str) -> int:
    factor = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "k": 1000}[unit[:1]]
    return round(float(value) * factor)


def from_rdc(output: str) -> Answer:
    report = json.loads(output)
    by_file = report["levels"][0]
    chunks = next(level for level in report["levels"] if level["name"] == "cdc-16384")
    return Answer(
        by_file["chunks"] - by_file["unique_chunks"],
        report["duplicate_bytes"],
        chunks["unique_bytes"],
        chunks["compressed_bytes"],
    )


def from_jdupes(output: str) -> Answer:
    found = re.search(r"(\d+) duplicate files \(in \d+ sets\), occupying (\d+) (\w+)", output)
    return Answer(int(found[1]), scaled(found[2], found[3].replace("bytes", "B"))) if found else Answer(0, 0)


def from_fdupes(output: str) -> Answer:
    found = re.search(r"(\d+) duplicate files \(in \d+ sets\), occupying ([\d.]+) (\w+)", output)
    if not found:
        return Answer(0, 0)
    unit = {"bytes": 1, "kilobytes": 1000, "megabytes": 1000_000}[found[3]]
    return Answer(int(found[1]), round(float(found[2]) * unit))


def from_rdfind(output: str) -> Answer:
    found = re.search(r"Totally, ([\d.]+) (\w+) can be reduced", output)
    return Answer(None, scaled(found[1], found[2]) if found else 0)


def from_rmlint(output: str) -> Answer:
    files = re.search(r"whereof (\d+) are duplicates", output)
    size = re.search(r"equals ([\d.]+) (\w+) of duplicates", output)
    return Answer(int(files[1]) if files else 0, scaled(size[1], size[2]) if size else 0)


def from_restic(output: str) -> Answer:
    summary = json.loads(output.strip().splitlines()[-1])
    return Answer(kept=summary["data_added"], compressed=summary.get("data_added_packed"))


def from_borg(output: str) -> Answer:
    stats = json.loads(output)["cache"]["stats"]
    return Answer(kept=stats["unique_size"], compressed=stats["unique_csize"])


TOOLS = (
    Tool("rdc scan", lambda tree, _: [*RDC, "scan", "--no-catalog", "--json", str(tree)], from_rdc),
    Tool(
        "rdc scan --no-zstd",
        lambda tree, _: [*RDC, "scan", "--no-catalog", "--no-zstd", "--json", str(tree)],
        from_rdc,
    ),
    Tool("jdupes", lambda tree, _: ["jdupes", "-r", "-m", "-q", "-H", str(tree)], from_jdupes),
    Tool(
        "rdfind",
        lambda tree, _: ["rdfind", "-dryrun", "true", "-makeresultsfile", "false", str(tree)],
        from_rdfind,
    ),
    Tool("fdupes", lambda tree, _: ["fdupes", "-r", "-m", "-q", "-n", str(tree)], from_fdupes),
    Tool(
        "rmlint",
        lambda tree, _: [
            "rmlint",
            "-T",
            "df",
            "--hidden",
            "--see-symlinks",
            "-o",
            "summary:stdout",
            str(tree),
        ],
        from_rmlint,
    ),
    Tool("duperemove", lambda tree, _: ["duperemove", "-r", str(tree)], lambda _: Answer()),
    Tool(
        "restic",
        lambda tree, scratch: [
            "restic",
            "-r",
            f"{scratch}/r",
            "--json",
            "-q",
            "backup",
            "--no-cache",
            str(tree),
        ],
        from_restic,
        lambda scratch: ["restic", "-q", "-r", f"{scratch}/r", "init"],
    ),
    Tool(
        "borg",
        lambda tree, scratch: ["borg", "create", "--json", "-C", "zstd,3", f"{scratch}/b::1", str(tree)],
        from_borg,
        lambda scratch: ["borg", "init", "-e", "none", f"{scratch}/b"],
    ),
)


def run(tool: Tool, tree: Path, place: Path) -> Result:
    scratch = Path(tempfile.mkdtemp(dir=place))
    environ = {**os.environ, "RESTIC_PASSWORD": "x", "BORG_BASE_DIR": str(scratch), "HOME": str(scratch)}
    environ |= {"BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes", "LC_ALL": "C.UTF-8"}
    try:
        if tool.before is not None:
            subprocess.run(tool.before(scratch), env=environ, check=True, capture_output=True)
        out = scratch / "out"
        cost = harness.run(tool.words(tree, scratch), env=environ, out=out, accept=(0, 3), cwd=scratch)
        answer = tool.answer(out.read_text(errors="replace"))
        return Result(tool.name, tree.name, cost.cpu, cost.wall, cost.memory, answer)
    finally:
        shutil.rmtree(scratch)


def shown(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def main() -> None:
    parser = arguments(__doc__, runs=3, place=True)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--small", type=int, default=0)
    parser.add_argument("--big", type=float, default=0)
    parser.add_argument("--only", default="", help="names of tools that contain this")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tools = []
    for tool in TOOLS:
        program = tool.words(Path("x"), Path("x"))[0]
        if given.only in tool.name:
            if shutil.which(program) or Path(program).exists():
                tools.append(tool)
            else:
                print(f"{tool.name}: not installed", file=sys.stderr)
    everything = []
    with scratch(given.place) as made:
        trees = list(given.trees)
        trees += [small_files(made / "small", given.small)] if given.small else []
        trees += [big_file(made / "big", round(given.big * 1024))] if given.big else []
        print(f"{machine()}, medians of {given.runs}\n")
        for tree in trees:
            sizes = [
                path.lstat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink()
            ]
            total = sum(sizes)
            print(f"## {tree}: {len(sizes):,} files, {total / 1e6:,.1f} MB\n")
            table = Table(
                *("tool", "CPU, s", "wall, s", "memory, MB", "MB per CPU s", "files per CPU s"),
                *("duplicate files", "bytes", "unique chunks, bytes", "compressed"),
            )
            ways = {tool.name: partial(run, tool, tree, made) for tool in tools}
            found = in_turns(ways, given.runs, uncounted=1)
            for results in found.values():
                one = medians(results)
                everything.append(one)
                a = one.answer
                if one.tool.startswith("rdc") and a.duplicate_files is not None:
                    # The report counts empty files as identical; the other tools ignore them.
                    a = replace(a, duplicate_files=a.duplicate_files - max(0, sizes.count(0) - 1))
                    one.answer = a
                table.row(
                    *(one.tool, f"{one.cpu:.2f}", f"{one.wall:.2f}", f"{one.memory / 1e6:.0f}"),
                    *(f"{total / 1e6 / one.cpu:,.0f}", f"{len(sizes) / one.cpu:,.0f}"),
                    *map(shown, (a.duplicate_files, a.duplicate_bytes, a.kept, a.compressed)),
                )
            print()
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in everything], indent=1) + "\n")


if __name__ == "__main__":
    main()
