"""The daemon's document names every setting and event, and each event is one line of the log."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rdc.daemon import config
from rdc.daemon.config import Limits, ModuleSettings, TopSettings
from rdc.daemon.log import Log
from rdc.errors import ExitCode
from rdc.model.settings import settings_of
from tests.support.running.syncing import command


def test_the_document_names_every_setting_and_event() -> None:
    document = (Path(config.__file__).parent / "DAEMON.md").read_text()
    for field in fields(Limits):
        name = field.name.replace("_", "-")
        sizes = {"memory": '`"512M"`', "decompressed": '`"4T"`', "written": '`"4T"`'}
        default = sizes.get(name, str(getattr(Limits(), field.name)))
        assert f"| `{name}` | {default} |" in document, name
    for name in (*settings_of(TopSettings), *settings_of(ModuleSettings)):
        assert f"`{name}`" in document, name
    sources = "".join(path.read_text() for path in Path(config.__file__).parent.glob("*.py"))
    calls = r'(?:log\(\s*(?:"\w+"|"info" if [^,]*),|stranger\()\s*"(\w+)"'
    events = set(re.findall(calls, sources)) | {"refused", "close", "open"}
    assert len(events) > 15
    for event in events:
        assert f"`{event}`" in document, event


@pytest.mark.parametrize("as_json", [False, True])
def test_log_lines_are_lines(as_json: bool) -> None:
    lines: list[bytes] = []
    log = Log(as_json=as_json, write=lines.append, clock=lambda: 0.5)
    log("info", "e", path=b'a "b"\n\x1b=\xff\\', none=None, number=7, long="x" * 5000)
    (line,) = lines
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and len(line) < 4096
    assert line.isascii() and b"\x1b" not in line and b"none" not in line
    if as_json:
        import json

        assert json.loads(line)["path"] == 'a "b"\\x0a\\x1b=\\xff\\\\'
        assert json.loads(line)["ts"] == "1970-01-01T00:00:00.500Z"
    else:
        assert b'path="a \\"b\\"\\\\x0a\\\\x1b=\\\\xff\\\\\\\\" number=7 ' in line


def test_strangers_do_not_fill_the_log() -> None:
    lines: list[bytes] = []
    now = [0.0]
    log = Log(as_json=False, write=lines.append, clock=lambda: now[0])
    for _ in range(1000):
        log.stranger("unknown_peer")
    assert len(lines) == 20
    now[0] = 1.0
    log.stranger("unknown_peer")
    assert b"event=suppressed lines=980" in lines[20] and len(lines) == 22


def test_refused_usage() -> None:
    for words in (["serve", "--config", "x", "--stdio"], ["serve"], ["serve", "--config"]):
        assert command(*words).code == ExitCode.USAGE
