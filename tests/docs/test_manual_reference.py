"""The reference has every option, exit code, event, setting and public name of the code."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import rdc
from rdc.cli import main
from rdc.cli.environment import SETTINGS
from rdc.cli.options.sync_options import SYNC_OPTIONS, parse_sync
from rdc.cli.verb import VERBS, load_verb
from rdc.daemon.config import Limits, ModuleSettings, TopSettings
from rdc.errors import ExitCode, UsageError
from rdc.lean.records import field_names
from rdc.model.duplicates import DuplicateOrder
from rdc.model.options import Option
from rdc.report import json_output
from rdc.watching import command
from scripts.manual import events, options, reference, scan_report
from tests.docs.parsed_command import parsed
from tests.support.event_schemas import MAY_LACK, SCHEMAS
from tests.support.project_paths import TOP

DOCS = TOP / "docs"

OPTIONS = [(verb, option) for verb in VERBS for group in load_verb(verb).OPTIONS for option in group.options]


def text_of(page: str) -> str:
    return (DOCS / page).read_text()


@pytest.mark.parametrize(("verb", "option"), OPTIONS, ids=lambda part: getattr(part, "key", part))
def test_each_option_is_on_its_page_with_an_example(verb: str, option: Option) -> None:
    page = options.verb_page(verb)
    for spelling in options.spelled(option):
        assert f"`{spelling}`" in page
    example = options.example(verb, option)
    assert f"    {example}\n" in page
    words = shlex.split(example.partition(" | ")[0].partition(" > ")[0])
    assert words[:2] == ["rdc", verb]
    assert option.key in parsed(words[1:])


def test_notes_are_about_options_that_exist() -> None:
    assert options.unused_notes() == []


def test_watch_has_the_options_of_sync_but_those_named() -> None:
    sync = {name for group in SYNC_OPTIONS for option in group.options for name in option.names}
    own = {name for group in command.OPTIONS for option in group.options for name in option.names}
    assert own - sync == {"--rescan", "--on-sync"}
    said = text_of("explanation/watching.md").partition("## Options it does not have")[2]
    named = set(re.findall(r"`(-[\w-]+)`", said))
    lacking = sync - own
    assert named <= lacking
    for option in (option for group in SYNC_OPTIONS for option in group.options):
        assert not set(option.names) & lacking or set(option.names) & named, option.names


def test_all_orders_of_dupes_are_named() -> None:
    page = options.verb_page("dupes")
    assert all(order.value in page for order in DuplicateOrder)


def test_exit_codes_are_complete() -> None:
    listed = [
        int(code)
        for code in re.findall(r"^\| <a[^>]*></a>(\d+) \|", reference.exit_code_table(), re.MULTILINE)
    ]
    assert listed == sorted({*ExitCode, main.READER_GONE})
    for verb in VERBS:
        said = load_verb(verb).help_text().partition("Exit codes:")[2]
        assert {int(code) for code in re.findall(r"\b\d+\b", said)} <= {*listed, 600}


def test_settings_are_complete() -> None:
    table = reference.settings_table()
    for setting in SETTINGS:
        assert f"| `{setting.key}` | `{setting.variable}` |" in table


def test_settings_of_a_daemon_are_complete() -> None:
    section = reference.document_section("rdc/daemon/DAEMON.md", "Settings")
    keys = {
        name.replace("_", "-")
        for record in (TopSettings, ModuleSettings, Limits)
        for name in field_names(record)
    }
    assert len(keys) > 20
    assert all(f"`{key}`" in section or f"[{key}" in section for key in keys), keys


def test_events_of_a_sync_are_those_that_programs_rely_on() -> None:
    found = {example.name: set(example.fields) for example in events.events_of("sync")}
    assert found.keys() == SCHEMAS.keys()
    for name, fields in SCHEMAS.items():
        assert set(fields) - MAY_LACK.get(name, set()) <= found[name]


def test_every_event_that_rdc_writes_is_in_the_reference() -> None:
    written = {"start", *(name for name, _ in json_output.EVENTS.values() if name)}
    listed = {example.name for verb in events.EVENTS for example in events.events_of(verb)}
    assert written == listed
    page = text_of("reference/events.md")
    for verb in events.EVENTS:
        assert f"<!-- generated: events {verb} -->" in page
        events.events_section(verb)


def test_the_scan_report_has_a_meaning_for_its_main_fields() -> None:
    table = scan_report.scan_report()
    fields = json.loads(scan_report.SCHEMA.read_text())["properties"]
    assert all(f"| `{name}` |" in table for name in fields if not name.endswith("_b64"))


def test_the_verbs_with_events_are_those_with_the_option() -> None:
    documents = {"scan", "merge", "signature"}  # these print one object instead
    with_json = {verb for verb, option in OPTIONS if option.key == "--json"}
    # `rdc run` prints the events of the job's verb.
    assert with_json == events.EVENTS.keys() | documents | {"run"}


def test_the_python_api_is_complete() -> None:
    text = "".join(page.read_text() for page in (DOCS / "reference" / "api").glob("*.md"))
    named = " ".join(re.findall(r"<!-- generated: api (.*?) -->", text)).split()
    assert len(named) == len(set(named))
    assert set(named) == set(rdc.__all__) - {"__version__"}


def test_each_verb_has_a_page_in_the_contents() -> None:
    contents = (TOP / "scripts" / "manual" / "mkdocs.yml").read_text()
    assert all(page in contents for page in options.PAGES.values())


def test_dependencies_have_a_purpose() -> None:
    listed = re.findall(r"^\| ([\w-]+) \|", reference.dependency_table(), re.MULTILINE)
    assert set(listed) - {"package"} == reference.PURPOSES.keys()


def test_what_is_not_there_fails_by_name() -> None:
    section = text_of("index.md").split("\n## Not there yet\n")[1]
    names = re.findall(r"`(--[\w-]+)`", section)
    assert names
    for name in names:
        with pytest.raises(UsageError, match=f"rdc has no {name}"):
            parse_sync([name, "a", "b"])
