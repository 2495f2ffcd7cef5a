"""Counts how much of rdc one has to keep in mind.

Prints sizes of the source, in how many files an option and a message are named, what one more file of a sync
runs (modules, functions and calls of rdc: a sync of 14 files less one of 4, a tenth of it a file), and what a
local sync of one changed file loads. Run it before and after a change of structure.
Command: .venv/bin/python -m bench.concepts
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import rdc
from bench.harness import scratch

PACKAGE = Path(rdc.__file__).parent
FEW, MANY = 4, 14
LARGE, SMALL = 1 << 20, 3000


def sources(*suffixes: str) -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in suffixes and path.is_file()]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def import_lines(path: Path) -> int:
    """Count lines of import statements and of `__all__`."""
    count = 0
    for node in ast.walk(ast.parse(path.read_text())):
        named = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        )
        if named or isinstance(node, (ast.Import, ast.ImportFrom)):
            assert isinstance(node, ast.stmt)
            count += (node.end_lineno or node.lineno) - node.lineno + 1
    return count


def files_naming(word: str) -> int:
    return sum(word in path.read_text() for path in sources(".py", ".pyi", ".c", ".h"))


def write(directory: Path, count: int, size: int, seed: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (directory / f"file {number}").write_bytes(random.Random(seed + number).randbytes(size))


def changed(top: Path, count: int) -> None:
    write(top / "src", count, LARGE, 1)
    write(top / "dst", count, LARGE, 1)
    for number in range(count):
        path = top / "src" / f"file {number}"
        content = bytearray(path.read_bytes())
        content[500_000:500_100] = bytes(150)
        path.write_bytes(content)
        os.utime(path, (1_700_000_000, 1_700_000_000))


def new(size: int) -> Callable[[Path, int], None]:
    def prepare(top: Path, count: int) -> None:
        write(top / "src", count, size, 1)
        (top / "dst").mkdir()

    return prepare


def deleted(top: Path, count: int) -> None:
    """Prepare a deletion of a small part of a tree: a sync asks before it deletes most of one."""
    for side in ("src", "dst"):
        write(top / side / "stays", 40, SMALL, 1)
    write(top / "dst", count, SMALL, 1)


def calls_of_sync(prepare: Callable[[Path, int], None], count: int) -> Counter[CodeType]:
    """Count the calls of each function of rdc in a sync of `count` files.

    Constructors that rdc.lean derives from fields are left out: those of dataclasses have no file either.
    """
    seen: Counter[CodeType] = Counter()
    prefix, lean = f"{PACKAGE}{os.sep}", f"{PACKAGE / 'lean'}{os.sep}"

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        derived = code.co_name in {"__init__", "__new__"} and code.co_filename.startswith(lean)
        if event == "call" and code.co_filename.startswith(prefix) and not derived:
            seen[code] += 1

    with scratch() as top:
        prepare(top, count)
        options = rdc.SyncOptions(delete=True) if prepare is deleted else rdc.SyncOptions()
        sys.setprofile(note)
        try:
            rdc.sync(f"{top}/src/", f"{top}/dst", options)
        finally:
            sys.setprofile(None)
    return seen


def marginal(prepare: Callable[[Path, int], None]) -> str:
    """Return modules, functions and calls that one more file costs."""
    calls_of_sync(prepare, FEW)  # What loads and what is computed once is there from now on.
    few, many = calls_of_sync(prepare, FEW), calls_of_sync(prepare, MANY)
    more = {code: count - few[code] for code, count in many.items() if count - few[code] >= (MANY - FEW) // 2}
    modules = {code.co_filename for code in more}
    return f"{len(modules)}, {len(more)}, {round(sum(more.values()) / (MANY - FEW))}"


def loaded_modules() -> int:
    """Count modules of rdc that a local sync of one changed file has loaded at its end."""
    with scratch() as top:
        changed(top, 1)
        script = (
            "import sys\n"
            "from rdc.cli.environment import process_environment\n"
            "from rdc.cli.main import run\n"
            f"run(['sync', '{top}/src/', '{top}/dst'], process_environment())\n"
            "print(sum(name.partition('.')[0] == 'rdc' for name in sys.modules))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return int(done.stdout.split()[-1])


def main() -> None:
    os.environ["RDC_CATALOG"] = "off"
    python = sources(".py")
    print(f"lines of rdc/ (.py .pyi .c .h)      {sum(map(lines, sources('.py', '.pyi', '.c', '.h'))):,}")
    print(f"Python files                        {len(python)}")
    print(f"lines of imports and __all__        {sum(map(import_lines, python)):,}")
    print(f"files that name modify_window       {files_naming('modify_window')}")
    print(f"files that name TraitsRequest       {files_naming('TraitsRequest')}")
    print(f"changed 1 MB file, one more         {marginal(changed)}")
    print(f"new 1 MB file                       {marginal(new(LARGE))}")
    print(f"deleted file                        {marginal(deleted)}")
    print(f"small new file                      {marginal(new(SMALL))}")
    print(f"modules loaded by a local sync      {loaded_modules()}")
    print(f"C extension modules                 {len([p for p in sources('.so') if 'cpython' in p.name])}")


if __name__ == "__main__":
    main()
