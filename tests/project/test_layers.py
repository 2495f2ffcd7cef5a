"""Imports point down: a module reads without the layers above its own. rdc/ARCHITECTURE.md draws the layers.

This command puts the present drawing into it:

    .venv/bin/python -m tests.project.test_layers
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import rdc
from tests.support.project_paths import PACKAGE, TOP, modules, name_of

ARCHITECTURE = PACKAGE / "ARCHITECTURE.md"
ARCHITECTURE_LINES = 160
BEGIN, END = "<!-- drawn by tests/project/test_layers.py -->\n", "<!-- end of the drawing -->"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("lean", "version"),
    ("errors", "limits"),
    ("model", "progress"),
    ("rabin", "protocol", "transport", "files"),
    ("kernel",),
    ("chunking",),
    ("signature",),
    ("similarity", "tree"),
    ("catalog", "plan", "undoing"),
    ("store",),
    ("session", "survey", "duplicates", "jobs"),
    ("watching",),
    ("uniting",),
    ("checking", "daemon", "report", "install", "documents"),
    ("cluster",),
    ("library",),
    ("cli",),
)
"""Packages and top-level modules, lowest first. A module imports its own package and lower ones."""

ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "protocol": (("wire",), ("messages",), ("",)),
    "files": (
        ("_files",),
        ("base",),
        ("depth",),
        ("own", "root"),
        ("bulk", "facts", "objects"),
        ("replace",),
        ("names",),
    ),
    "kernel": (("constants",), ("cut",), ("",)),
    "session": (
        ("binaries", "runtime", "trees"),
        ("source",),
        ("far",),
        ("transfer",),
        ("destination",),
        ("",),
    ),
    "survey": (("walk",), ("slices",), ("count", "read"), ("scan", "similar", ""), ("parts",)),
    "documents": (("read",), ("parts",), ("gather",), ("find",), ("reread",), ("",)),
    "cli": (("help_page",), ("environment",), ("options",), ("",), ("verbs",)),
}
"""Rooms within a package, lowest first. A room is a folder or one module; "" is the rest of the package. A
module imports its own room and lower ones."""

SLICES = (
    "undoing",
    "survey",
    "duplicates",
    "checking",
    "watching",
    "install",
    "documents",
    "store",
    "uniting",
    "jobs",
)
"""Packages that hold a verb as a whole, with the modules that show it and that read its command line."""

SLICE_ENDS = {"report": ("report", ""), "command": ("cli", "verbs")}
"""The package and room to which a module of a slice belongs, by its name or folder, or the end of it:
dedupe_command."""

Rank = tuple[int, int]


def layer_of(name: str, layers: tuple[tuple[str, ...], ...]) -> int:
    for number, names in enumerate(layers):
        if name in names:
            return number
    raise AssertionError(f"{name or 'the top folder'}: give it a layer")


def place_of(module: str) -> tuple[str, str, Rank]:
    """The package and the room of a module such as rdc.files.root.root, and the ranks of both."""
    _, package, *rest = module.split(".")
    if package in SLICES and rest and (end := rest[0].rpartition("_")[2]) in SLICE_ENDS:
        package, room = SLICE_ENDS[end]
        return package, room, (layer_of(package, LAYERS), layer_of(room, ROOMS.get(package, (("",),))))
    rank = layer_of(package, LAYERS)
    if package not in ROOMS or not rest:
        return package, "", (rank, -1 if not rest else 0)
    rooms = {name for names in ROOMS[package] for name in names}
    room = rest[0] if rest[0] in rooms else ""
    return package, room, (rank, layer_of(room, ROOMS[package]))


PURE = {"rabin", "kernel", "chunking", "signature", "similarity", "plan", "protocol"}
"""Packages that do no I/O and read no clock."""

PURE_MODULES = {"uniting/rows.py", "uniting/renames.py", "uniting/plan.py"}
"""Modules of other packages for which the same holds."""

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
"""Modules of Python that do I/O, read a clock or draw random numbers."""

PURE_EXCEPTIONS = {("kernel/__init__.py", "os")}
"""The choice of the kernel variant reads RDC_KERNEL from the environment."""


@functools.cache
def imported(path: Path) -> list[str]:
    """Modules and names that a file imports anywhere, in functions and for the type checker as well."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute, so that ranks can be read off them"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@functools.cache
def known_modules() -> set[str]:
    return {name_of(path) for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi")}


def targets_of(path: Path) -> set[str]:
    """The modules of rdc that a file imports, extension modules included."""
    known = known_modules()
    targets = {name if name in known else name.rpartition(".")[0] for name in imported(path)}
    return {target for target in targets if target in known}


def test_imports_point_down() -> None:
    for path in modules():
        module = name_of(path)
        if module == "rdc.__main__":
            continue
        package, room, rank = place_of(module)
        for target in targets_of(path):
            assert target != "rdc", f"{path}: import the module, not the package facade"
            other_package, other_room, other_rank = place_of(target)
            assert (package, room) == (other_package, other_room) or other_rank < rank, (
                f"{path} (layer {rank}) imports {target} (layer {other_rank})"
            )


def test_no_import_circles() -> None:
    graph = {name_of(path): targets_of(path) for path in modules()}
    while graph:
        targets_of_any = set[str]().union(*graph.values())
        ends = {
            module for module in graph if module not in targets_of_any or not graph[module] & graph.keys()
        }
        if not ends:
            break
        graph = {module: targets - ends for module, targets in graph.items() if module not in ends}
    assert not graph, f"imports in a circle: {sorted(graph)}"


def folders(top: Path) -> list[Path]:
    return [path for path in top.rglob("*") if path.is_dir() and path.name != "__pycache__"]


def test_every_package_says_what_it_holds() -> None:
    for folder in folders(PACKAGE):
        if any(folder.glob("*.py")):
            text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
            assert text, f"{folder}: say in __init__.py what it holds and who uses it"


def test_pure_packages_do_no_io() -> None:
    for path in modules():
        relative = path.relative_to(PACKAGE)
        if relative.parts[0] not in PURE and relative.as_posix() not in PURE_MODULES:
            continue
        for name in imported(path):
            top = name.split(".")[0]
            assert top not in IMPURE_MODULES or (relative.as_posix(), top) in PURE_EXCEPTIONS, (
                f"{path} imports {name}"
            )


def test_public_names_are_not_packages() -> None:
    packages = {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    assert not packages & set(getattr(rdc, "__all__", []))


def test_records_are_made_by_rdc_records() -> None:
    """Each class of dataclasses adds 0.35 ms to every start, the first one 6 ms: rdc/lean/records.py."""
    for path in modules():
        if path.name != "records.py":
            assert not any(name.split(".")[0] == "dataclasses" for name in imported(path)), path


def test_typing_is_for_the_checker_alone() -> None:
    """The typing module and what it loads take 4 ms of a start: rdc/lean/typed.py."""
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


def layers_drawing() -> list[str]:
    """One row a layer, the highest on top."""
    rows = [f"{number:>2}  {'   '.join(names)}" for number, names in reversed(list(enumerate(LAYERS)))]
    width = max(map(len, rows))
    border = f"+{'-' * (width + 2)}+"
    return [border, *(f"| {row:<{width}} |" for row in rows), border]


def room_name(name: str) -> str:
    return name or "(other modules)"


def rooms_drawing() -> list[str]:
    """One line a package, its highest rooms first."""
    width = max(map(len, ROOMS))
    return [
        f"{package:<{width}}  {' > '.join(', '.join(map(room_name, names)) for names in reversed(ranks))}"
        for package, ranks in ROOMS.items()
    ]


def picture() -> str:
    """Both drawings as a block of Markdown."""
    rows = [*layers_drawing(), "", *rooms_drawing()]
    return "".join(f"    {row}".rstrip() + "\n" for row in rows)


def with_picture(text: str) -> str:
    """The document with the present picture between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, "the document has no place for the drawing"
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


def test_the_architecture_is_short() -> None:
    assert len(ARCHITECTURE.read_text().splitlines()) <= ARCHITECTURE_LINES


def test_the_picture_shows_the_present_layers() -> None:
    text = ARCHITECTURE.read_text()
    assert with_picture(text) == text, "run .venv/bin/python -m tests.project.test_layers"


def test_paths_of_the_architecture_exist() -> None:
    """Paths are relative to rdc/, those in the tables of the walk to rdc/session/, others to the checkout."""
    paths = re.findall(r"`([\w.-]+/[\w./-]+)`", ARCHITECTURE.read_text())
    assert len(paths) > 60
    missing = [
        path
        for path in paths
        if not any((folder / path).exists() for folder in (PACKAGE, PACKAGE / "session", TOP))
    ]
    assert not missing


def main() -> None:
    ARCHITECTURE.write_text(with_picture(ARCHITECTURE.read_text()))


if __name__ == "__main__":
    main()
