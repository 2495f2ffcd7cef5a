"""README.md and CHANGELOG.md: short, with links that lead somewhere, and figures that were measured."""

from __future__ import annotations

import re
import tomllib

import pytest

from scripts.manual.readability import MOST_CELL_WORDS, MOST_WORDS, all_pages, measured, sentences_of
from scripts.manual.wire_figures import SHOWN, wire
from tests.support.project_paths import TOP

PAGES = all_pages()
README = (TOP / "README.md").read_text()
BENCHMARKS = (TOP / "docs" / "benchmarks.md").read_text()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150
    assert len(README.encode()) <= 12_000


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_to_files_of_the_package(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (TOP / name).read_text()):
        assert re.match("https://", target) or (TOP / target).exists(), target


def figures(pair: str) -> dict[str, float]:
    found: dict[str, float] = next(
        row for row in wire()["rows"] if row["pair"] == pair and row["mtimes"] == "kept"
    )
    return found


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    linux, sqlite = figures("Linux 6.1.190 to 6.1.192"), figures("a SQLite file, 1 % of its rows")
    assert f"{linux['rdc'] / 1e6:.2f} MB" in README and f"{linux['rsync'] / 1e6:.2f} MB" in README
    assert f"{sqlite['rdc'] / 1e6:.1f} MB of {sqlite['rsync'] / 1e6:.0f} MB" in README
    assert f"{linux['cpu_rdc']} / {linux['cpu_rsync']}" in README
    table = README.split("## How much it sends")[1].split("##")[0]
    for row in re.findall(r"^\| [\d].* \|$", table, re.MULTILINE):
        for cell in re.findall(r"[\d.]+ / [\d.]+", row):
            assert f"| {cell} |" in BENCHMARKS, cell


def test_the_chart_shows_pairs_that_were_measured() -> None:
    assert SHOWN.keys() <= {row["pair"] for row in wire()["rows"]}


def test_each_benchmark_has_its_date_commit_and_command() -> None:
    for section in BENCHMARKS.split("\n## ")[1:]:
        assert re.search(r"\*20\d\d-\d\d-\d\d, commit [0-9a-f]{7}, ", section), section[:40]
        assert re.search(r"\bbench\.\w+", section), section[:40]


def test_the_changelog_has_the_form_that_it_names() -> None:
    text = (TOP / "CHANGELOG.md").read_text()
    version = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]
    heads = re.findall(r"^## \[([^]]+)\](?: - \d{4}-\d\d-\d\d)?$", text, re.MULTILINE)
    assert heads[0] == "Unreleased" or heads[0] == version
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


@pytest.mark.parametrize("name", PAGES)
def test_sentences_are_short(name: str) -> None:
    found = measured(PAGES[name])
    assert found.words <= MOST_WORDS
    assert found.cell <= MOST_CELL_WORDS


def test_sentences_are_counted_as_people_do() -> None:
    prose = "# A head\n\nOne two three four. Five `rdc sync a b` six\nseven.\n\n- an item\n"
    page = prose + "\n| a | b c |\n|---|---|\n\n```sh\nno\n```\n"
    assert sentences_of(page) == ["One two three four.", "Five code six seven.", "an item", "a", "b c"]
    assert measured(page).words == 4
