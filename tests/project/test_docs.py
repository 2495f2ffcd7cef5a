"""The documents that stand beside the code name what is there. tests/docs has the manual and the README."""

from __future__ import annotations

import re

from tests.support.project_paths import TOP


def test_paths_to_read_exist() -> None:
    text = re.sub(r"```.*?```", "", (TOP / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    paths = [
        code for code in re.findall(r"`([^`]+)`", text) if re.match(r"(?:rdc|docs|tests|scripts)/", code)
    ]
    assert len(paths) > 20
    assert all(list(TOP.glob(path.partition(" ")[0].rstrip("/"))) for path in paths)


def test_the_map_of_the_session_names_each_of_its_modules_once_in_its_folder() -> None:
    package = TOP / "rdc" / "session"
    named, folder = [], ""
    for line in (package / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3:
            first = cells[0].strip("`")
            folder = "" if first == "top" else first or folder
            named += [folder + name for name in re.findall(r"`(\w+\.py)`", cells[2])]
    modules = (path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    assert sorted(named) == sorted(module for module in modules if not module.endswith("__init__.py"))
