"""The documents that stand beside the code name what is there. tests/docs has the manual and the README."""

from __future__ import annotations

import re

from scripts.manual.transcripts import pages
from tests.support.project_paths import TOP


def test_paths_to_read_exist() -> None:
    found = 0
    for page in pages():
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for code in re.findall(r"`([^`]+)`", text):
            if re.match(r"(?:bench|rdc|docs|tests|scripts|fixtures)/", code):
                assert list(TOP.glob(code.partition(" ")[0].rstrip("/"))), (page, code)
                found += 1
    assert found > 60


def test_paths_in_the_glossary_exist() -> None:
    for path in re.findall(r"`((?:rdc|tests|scripts)/[\w./-]+)`", (TOP / "rdc" / "GLOSSARY.md").read_text()):
        assert (TOP / path).exists(), path


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
