"""Traces one changed file through both sides of a session, and lists the modules that run for it.

The traced run syncs a text file of 300 KB with an edit in its middle, with both sides in this process. A
module of rdc.session is on the way if one of its functions runs for the file:

- At the destination: within FileRouter.update, FileRouter.pump or FileRouter.take, from the call of
  FileRouter.update to the end of FileCommits.commit.
- At the source: within FileAnswers.answer.

A generator runs whenever it is resumed, so schedulers count. Modules and classes being loaded do not count:
a first, untraced run loads them all. What calls the router and the answers is the same for all files.

rdc/ARCHITECTURE.md lists the modules. This command brings its tables up to date. It keeps what they say of a
module, and puts the first line of the docstring beside a new one:

    .venv/bin/python -m tests.project.walk_trace
"""

from __future__ import annotations

import ast
import gc
import os
import random
import re
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import rdc
from rdc.session.applying.file_router import FileRouter
from rdc.session.landing.file_commits import FileCommits
from rdc.session.source.answers import FileAnswers
from tests.support.project_paths import TOP

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

SESSION = TOP / "rdc" / "session"
ARCHITECTURE = TOP / "rdc" / "ARCHITECTURE.md"
HEADINGS = ("At the destination", "At the source")
"""Headings above the tables of the document, in the order of traced_sides."""

FILE_BYTES = 300_000
RUNS_WITHIN_FUNCTION = 0x1
"""CO_OPTIMIZED: set in the code of functions, not in that of modules and classes."""


def code_of(function: Callable[..., object]) -> CodeType:
    return function.__code__


ROUTED = code_of(FileRouter.update)
COMMITTED = code_of(FileCommits.commit)
AT_DESTINATION = {ROUTED, code_of(FileRouter.pump), code_of(FileRouter.take)}
AT_SOURCE = {code_of(FileAnswers.answer)}


@dataclass
class Side:
    """The modules of one side, in order of first entry. Each side has a thread of its own."""

    within: set[CodeType]
    on: bool
    depth: int = 0
    """Calls of `within` that have not returned yet."""
    modules: list[str] = field(default_factory=list)

    def trace(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call":
            self.on |= code is ROUTED
            self.depth += code in self.within
            if self.on and self.depth and code.co_flags & RUNS_WITHIN_FUNCTION:
                name = frame.f_globals.get("__name__", "")
                if name.startswith("rdc.session.") and name not in self.modules:
                    self.modules.append(name)
        elif event == "return":
            self.on &= code is not COMMITTED
            self.depth -= code in self.within


def text(size: int) -> bytes:
    """Words in random order."""
    rng = random.Random(5)
    words = [bytes(rng.choices(b"abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(4000)]
    return b" ".join(rng.choice(words) for _ in range(size // 4))[:size]


def changed_file(top: Path) -> tuple[Path, Path]:
    """Two directories with one file: the new version with a later mtime, and the old one."""
    old = text(FILE_BYTES)
    middle = FILE_BYTES // 2
    new = old[:middle] + b"an edit in the middle" + old[middle + 10 :]
    for name, content, mtime in (("source", new, 1_000_000_000), ("destination", old, 900_000_000)):
        folder = top / name
        folder.mkdir(parents=True)
        (folder / "file.txt").write_bytes(content)
        os.utime(folder / "file.txt", (mtime, mtime))
    return top / "source", top / "destination"


def sync_changed_file(top: Path) -> None:
    """One call to storage at a time: a thread that helps a slow one would be taken for the source's."""
    source, destination = changed_file(top)
    report = rdc.sync(f"{source}/", destination, rdc.SyncOptions(fsync=False, depth=1), catalog=None)
    assert report.exit == 0
    assert report.files == 1
    # Fingerprints of blocks are short and keyed anew, so one sync in some hundred corrects a block of 8 KiB.
    assert 0 < report.literal_bytes < FILE_BYTES // 10, "the file comes by delta"
    assert (destination / "file.txt").read_bytes() == (source / "file.txt").read_bytes()


def traced_sides(top: Path) -> tuple[Side, Side]:
    """The destination and the source of a traced run below `top`."""
    sync_changed_file(top / "loading")
    destination, source = Side(AT_DESTINATION, on=False), Side(AT_SOURCE, on=True)
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # it would end generators of one side in the thread of the other
    threading.setprofile(source.trace)  # of threads that start now: the source's
    sys.setprofile(destination.trace)
    try:
        sync_changed_file(top / "traced")
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        if collects:
            gc.enable()
    assert destination.depth == source.depth == 0
    return destination, source


def split_table(text: str, heading: str) -> tuple[str, list[str], str]:
    """The document before the rows of the table below a heading, the rows, and the document after them."""
    match = re.search(rf"\n### {heading}\n\n\|[^\n]*\n\|[-|]*\n((?:\|[^\n]*\n)*)", text)
    assert match, heading
    return text[: match.start(1)], match[1].splitlines(), text[match.end(1) :]


def path_of(row: str) -> str:
    """The module's path below rdc/session that a row begins with."""
    return row.split("`")[1]


def listed_modules(heading: str) -> list[str]:
    """The modules in the rows of the table below a heading."""
    _, rows, _ = split_table(ARCHITECTURE.read_text(), heading)
    return [f"rdc.session.{path_of(row).removesuffix('.py').replace('/', '.')}" for row in rows]


def new_row(path: str) -> str:
    """A row with the first line of the module's docstring."""
    text = ast.get_docstring(ast.parse((SESSION / path).read_text())) or ""
    return f"| `{path}` | {text.splitlines()[0].rstrip('.')} |"


def with_modules(text: str, heading: str, modules: list[str]) -> str:
    """The document with these modules in the table below a heading."""
    before, rows, after = split_table(text, heading)
    present = {path_of(row): row for row in rows}
    paths = [f"{module.removeprefix('rdc.session.').replace('.', '/')}.py" for module in modules]
    return before + "".join(f"{present.get(path) or new_row(path)}\n" for path in paths) + after


def main() -> None:
    text = ARCHITECTURE.read_text()
    with tempfile.TemporaryDirectory() as top:
        for heading, side in zip(HEADINGS, traced_sides(Path(top)), strict=True):
            text = with_modules(text, heading, side.modules)
    ARCHITECTURE.write_text(text)


if __name__ == "__main__":
    main()
