"""The layout is the design: imports point down the ranks, so each part reads without those above it."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from pathlib import Path

import rdc

PACKAGE = Path(rdc.__file__).parent

# The flow is how data moves, the ranks are how imports move: strictly lower ranks or the own package.
# Rank 0 is two steps: values may mention errors and limits, never the other way.
RANKS: dict[str, float] = {
    "records": -1,
    "typed": -1,
    "errors": 0,
    "limits": 0,
    "threads": 0,
    "model": 0.5,
    "progress": 0.5,
    "rabin": 1,
    "protocol": 1,
    "transport": 1,
    "files": 1,
    "kernel": 2,
    "chunking": 3,
    "signature": 4,
    "similarity": 5,
    "tree": 5,
    "catalog": 6,
    "plan": 6,
    "session": 7,
    "survey": 7,
    "instances": 7,
    "daemon": 8,
    "watch": 8,
    "report": 8,
    "cli": 9,
}

# Pure packages do no I/O and read no clock: these modules would let them.
PURE = {"rabin", "kernel", "chunking", "signature", "similarity", "plan", "protocol"}
IMPURE_MODULES = {
    "os",
    "time",
    "random",
    "secrets",
    "socket",
    "subprocess",
    "pathlib",
    "tempfile",
    "shutil",
    "sqlite3",
}
# The choice of kernel reads RDC_KERNEL from the environment and nothing else.
PURE_EXCEPTIONS = {("kernel/choice.py", "os")}


def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that ranks can be read off them"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def test_every_module_has_a_rank() -> None:
    for path in modules():
        top = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        assert top in RANKS or top == "__main__", f"{path}: give {top} a rank"


def test_imports_point_down() -> None:
    for path in modules():
        own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "rdc" or own == "__main__":
                continue
            if parts[1] == "__version__":
                continue
            target = parts[1]
            assert target in RANKS, f"{path} imports {name}: import the module, not the package facade"
            assert target == own or RANKS[target] < RANKS[own], f"{path} (rank {RANKS[own]}) imports {name}"


def test_pure_packages_do_no_io() -> None:
    for path in modules():
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] not in PURE:
            continue
        for name in imported(path):
            top = name.split(".")[0]
            assert top not in IMPURE_MODULES or (relative.as_posix(), top) in PURE_EXCEPTIONS, (
                f"{path} imports {name}"
            )


def test_public_names_are_not_packages() -> None:
    packages = {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    assert not packages & set(getattr(rdc, "__all__", []))


def test_top_level_holds_exactly_the_agreed_entries() -> None:
    agreed = {
        "pyproject.toml",
        "README.md",
        "rdc",
        "tests",
        "fixtures",
        "scripts",
        ".ci",
        ".gitignore",
        "LICENSE",
    }
    listed = subprocess.run(
        ["git", "ls-files"], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {line.split("/")[0] for line in listed} <= agreed


def test_records_are_made_by_rdc_records() -> None:
    """A class of dataclasses costs every start 0.35 ms, and the first one 6 ms: rdc/records.py."""
    for path in modules():
        if path.name != "records.py":
            assert not any(name.split(".")[0] == "dataclasses" for name in imported(path)), path


def test_typing_is_for_the_checker_alone() -> None:
    """It and what it loads take 4 ms of a start: rdc/typed.py."""
    for path in modules():
        if path.name == "typed.py":
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body.clear()
        assert not any(
            isinstance(node, ast.ImportFrom) and node.module == "typing" for node in ast.walk(tree)
        ), f"{path}: write TYPE_CHECKING = False, and import from typing below it"


def test_every_c_file_is_built_and_every_header_said_to_be_needed() -> None:
    """What is not named goes into no source distribution, and a change of it builds nothing anew."""
    top = Path(rdc.__file__).parent.parent
    modules_of_c = tomllib.loads((top / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    named = {
        name for module in modules_of_c for key in ("sources", "depends") for name in module.get(key, ())
    }
    there = {str(path.relative_to(top)) for ending in "ch" for path in top.glob(f"rdc/**/*.{ending}")}
    assert named == there
