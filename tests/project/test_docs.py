"""The README is complete and true: its commands run, and it has every option, exit code and event."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from rdc.cli import main
from rdc.cli.options.dedupe_options import DEDUPE_OPTIONS, parse_dedupe, read_dedupe
from rdc.cli.options.filter_options import FILTER_GROUP
from rdc.cli.options.rsync_options import REFUSED_RSYNC_OPTIONS
from rdc.cli.options.sync_options import SYNC_OPTIONS, parse_sync, read_request
from rdc.cli.options.table import Option, OptionGroup
from rdc.cli.verb import VERBS, load_verbs
from rdc.cli.verbs import dupes, similar, sync, watch
from rdc.errors import ExitCode, UsageError
from rdc.model.duplicates import DuplicateOrder
from tests.report.test_report_json import MAY_LACK, OPTIONAL, SCHEMAS
from tests.support.project_paths import TOP

README = (TOP / "README.md").read_text()

COMMANDS = [line.strip() for line in README.splitlines() if re.match(r" {4}(scripts/|rdc )", line)]
OPTIONS: list[Option] = [option for group in SYNC_OPTIONS for option in group.options]


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below `heading`, without the two rows of its head."""
    section = README.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_first_two_commands_do_the_job_and_test_it() -> None:
    assert COMMANDS[0].startswith("scripts/rdc sync ")
    assert COMMANDS[1] == "scripts/test"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_can_be_typed(command: str) -> None:
    words = shlex.split(command.partition(" | ")[0], comments=True)
    program = words.pop(0)
    if program != "rdc":
        assert os.access(TOP / program, os.X_OK)
        if program != "scripts/rdc":
            return
    if words[0] == "sync":
        request = read_request(parse_sync(words[1:]), lambda _: b"")
        assert request.source != request.destination
    elif words[0] == "dedupe":
        assert read_dedupe(parse_dedupe(words[1:]), lambda _: b"").paths
    else:
        assert words[0] in (*VERBS, "--version", "--man")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_each_option_is_in_the_table(option: Option) -> None:
    documented = {code for row in rows("### Options of `rdc sync`") for code in codes(" ".join(row))}
    spelled = {re.split(r"[= ]", code)[0] for code in documented}
    assert set(option.names) <= spelled
    if option.metavar is not None:
        assert any(f"{name}={option.metavar}" in documented for name in option.names if name.startswith("--"))


def test_the_options_of_watch_are_those_of_sync_and_its_own() -> None:
    names = {name for group in watch.OPTIONS for option in group.options for name in option.names}
    assert names - {name for option in OPTIONS for name in option.names} == {"--rescan"}
    own = {code for row in rows("### Following a directory") for code in codes(row[0])}
    assert "--rescan=SECONDS" in own


@pytest.mark.parametrize(
    ("heading", "groups"),
    [
        ("### Identical files", dupes.OPTIONS),
        ("### Similar files and folders", similar.OPTIONS),
    ],
)
def test_each_option_of_a_survey_is_in_its_table(heading: str, groups: tuple[OptionGroup, ...]) -> None:
    documented = {code for row in rows(heading) for code in codes(row[0])}
    for option in (option for group in groups for option in group.options):
        if option not in FILTER_GROUP.options and option.key != "--help":
            shown = [f"{name}={option.metavar}" if option.metavar else name for name in option.names]
            assert set(shown) <= documented
    assert {order.value for order in DuplicateOrder} <= set(codes(README.split("| `--sort=ORDER` |")[1]))


def test_each_option_of_dedupe_is_in_its_table() -> None:
    documented = {
        re.split(r"[= ]", code)[0] for row in rows("### Single instances") for code in codes(row[0])
    }
    shared = {name for group in SYNC_OPTIONS for option in group.options for name in option.names}
    for group in DEDUPE_OPTIONS:
        for option in group.options:
            assert set(option.names) <= documented | shared, option.names


def test_each_option_in_the_text_exists() -> None:
    known = {name for option in OPTIONS for name in option.names} | set(REFUSED_RSYNC_OPTIONS)
    known |= {name for group in watch.OPTIONS for option in group.options for name in option.names}
    known |= set(
        re.findall(r"--?[a-z0][\w-]*", "".join(verb.help_text() for verb in load_verbs().values()))
    ) | {"--version", "--man"}
    for script in ("bench_sync.py", "bench_scan.py", "bench_dedupe.py", "bench_watch.py"):
        known |= set(re.findall(r'"(--[a-z-]+)"', (TOP / "scripts" / script).read_text()))
    text = re.sub(r"-c '[^']*'|ssh -p", "", README)
    used = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text, re.IGNORECASE)) - {"-avn"}
    assert len(used) > 40
    assert used <= known, used - known


def test_what_is_not_there_fails_by_name() -> None:
    section = README.split("\n## Not there yet\n")[1].split("\n## ")[0]
    for name in codes(section):
        if name.startswith("-") and len(name) > 1:
            with pytest.raises(UsageError, match=f"rdc has no {name}"):
                parse_sync([name, "a", "b"])


def test_exit_codes_are_complete() -> None:
    listed = [int(row[0]) for row in rows("### Exit codes")]
    assert listed == sorted({*ExitCode, main.READER_GONE})
    in_help = {int(code) for code in re.findall(r"\b\d+\b", sync.help_text().partition("Exit codes:")[2])}
    assert in_help <= set(listed)


def test_events_are_complete() -> None:
    table = {codes(row[0])[0]: codes(row[1]) for row in rows("### Events of `--json`")}
    assert set(table) == set(SCHEMAS)
    for event, schema in SCHEMAS.items():
        assert set(schema) - MAY_LACK.get(event, set()) <= set(table[event])
    assert "path_b64" in codes(README.split("### Events of `--json`")[1])
    assert OPTIONAL


def test_dependencies_are_those_of_the_build() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    listed = [row[0] for row in rows("## What it is built from")]
    assert listed == [re.split(r"[><=]", requirement)[0] for requirement in wanted]


def test_the_library_example_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line[4:] for line in README.splitlines() if re.match(r" {4}(>>>|\.\.\.|\[Match)", line)]
    example = doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, "README.md", None, 0)
    assert len(example.examples) > 5
    assert doctest.DocTestRunner().run(example).failed == 0
    assert (tmp_path / "traits.index").stat().st_size > 0


def test_paths_to_read_exist() -> None:
    section = README.split("\n## Reading the code\n")[1].split("\n## ")[0]
    paths = [code for code in codes(section) if "/" in code]
    assert len(paths) > 10
    assert all((TOP / path).exists() for path in paths)


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
