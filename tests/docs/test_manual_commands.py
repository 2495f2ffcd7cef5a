"""Commands of the manual that do not run in its examples can be typed: their own programs read them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.cli.environment import HOST_KEYS, SETTINGS, parse_words
from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS
from rdc.cli.verb import VERBS, load_verb
from rdc.jobs.config import read_jobs
from scripts.manual.transcripts import Block, blocks_of, pages
from tests.docs.parsed_command import parsed
from tests.support.project_paths import TOP

PROGRAMS = {
    *(
        "apt-get",
        "btrfs",
        "scp",
        "bash",
        "cat",
        "chmod",
        "cp",
        "df",
        "mkdir",
        "mv",
        "pip",
        "pipx",
        "rm",
        "ssh",
        "ssh-keygen",
        "sudo",
    ),
    *(
        "sysctl",
        "systemctl",
        "journalctl",
        "loginctl",
        "sleep",
        "man",
        "jq",
        "test",
        "python3",
        "flock",
        "stat",
        "sed",
        "ln",
        "uv",
        "pacman",
        "podman",
    ),
    *("echo", "seq", "touch", "tail", "grep", "find"),
}
"""Programs that examples use beside rdc and the scripts of this repository."""

KINDS = {"sh", "console", "text", "toml", "ini", "python", "json", "setup"}


def blocks(*kinds: str) -> Iterator[tuple[Path, Block]]:
    for path in pages():
        for block in blocks_of(path.read_text()):
            if not kinds or block.kind in kinds:
                yield path, block


def commands() -> list[str]:
    """Every command line in blocks of shell, and the two of the README that stand by themselves."""
    lines = re.findall(r"^ {4}(scripts/.*)$", (TOP / "README.md").read_text(), re.MULTILINE)
    for _, block in blocks("sh"):
        lines += block.text.replace("\\\n", " ").splitlines()
    for _, block in blocks("console"):
        lines += [command.line for command in block.commands]
    return sorted({line.strip() for line in lines if line.strip()})


def simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each simple command of a line: of pipes, lists and loops."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words: list[str] = []
    skip = False
    for word in [*reader, ";"]:
        if skip:
            skip = False
        elif set(word) <= set(";&|"):
            if words:
                yield words
            words = []
        elif word in (">", ">>", "<"):
            skip = True
        elif word in ("done", "fi") or (not words and re.match(r"(?:until|do|then|exec)$|[A-Z_]+=", word)):
            continue
        else:
            words.append(word)


def check(words: list[str]) -> None:
    """One simple command can be typed."""
    program, *rest = words
    if program == "for":
        return
    if program == "sudo":
        check(rest)
    elif program == "flock":
        check(rest[2:])
    elif program == "ssh" and len(rest) > 1:
        check(rest[1:])
    elif program in ("rdc", "scripts/rdc"):
        if rest[0] in ("--version", "--man", "--help"):
            return
        assert rest[0] in VERBS
        if not set(rest) & REFUSED_RSYNC_OPTIONS.keys():  # an example shows the error
            parsed(rest)
    elif program.startswith(("scripts/", ".venv/bin/")):
        script = next((word for word in words if word.startswith("scripts/")), None)
        more = words[words.index(script) + 1 :] if script else words
        text = ""
        if words[1:2] == ["-m"] and words[2].startswith("bench."):
            script = f"{words[2].replace('.', '/')}.py"
            text = (TOP / "bench" / "harness.py").read_text()
        if script is None:
            assert (TOP / program).exists(), program
            return
        assert (TOP / script).exists(), script
        text += (TOP / script).read_text()
        for option in (word.partition("=")[0] for word in more if word.startswith("--")):
            assert option in text, (script, option)
    else:
        own_python = program.startswith("~/") and program.endswith("/bin/python3")
        assert own_python or program in PROGRAMS, program


@pytest.mark.parametrize("line", commands())
def test_commands_can_be_typed(line: str) -> None:
    found = list(simple_commands(line))
    assert found
    for words in found:
        check(words)


def test_blocks_are_of_kinds_that_tests_know() -> None:
    assert {block.kind for _, block in blocks()} <= KINDS
    for path, block in blocks("text"):
        assert block.title in {"authorized_keys", "crontab", "rules.txt", "transcript"}, (path, block.text)


CRON_FIELD = r"(?:\*|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)(?:/\d+)?"
CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def test_lines_for_cron_are_right() -> None:
    lines = [
        line for _, block in blocks("text") if block.title == "crontab" for line in block.text.splitlines()
    ]
    assert len(lines) >= 3
    for line in lines:
        *fields, command = line.split(maxsplit=5)
        for field, (least, most) in zip(fields, CRON_RANGES, strict=True):
            assert re.fullmatch(CRON_FIELD, field), line
            assert all(least <= int(number) <= most for number in re.findall(r"\d+", field)), line
        assert "%" not in command  # cron makes a line end of it
        for words in simple_commands(command):
            check(words)


@pytest.mark.needs("systemd")
def test_units_are_taken_by_systemd(tmp_path: Path) -> None:
    units = [block for _, block in blocks("ini")]
    assert units
    program = tmp_path / "rdc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for block in units:
        unit = tmp_path / block.title
        unit.write_text(block.text.replace("/usr/local/bin/rdc", str(program)))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
        )
        named = [line for line in (done.stdout + done.stderr).splitlines() if block.title in line]
        assert (done.returncode, named) == (0, []), done
        started = re.search(r"^ExecStart=\S+/rdc (.*)$", block.text, re.MULTILINE)
        assert started
        parsed(shlex.split(started[1]))


def test_lines_of_authorized_keys_are_taken_by_ssh(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_text().split()[1]
    lines = [block.text for _, block in blocks("text") if block.title == "authorized_keys"]
    assert lines
    for line in lines:
        file = tmp_path / "authorized_keys"
        file.write_text(line.replace("AAAA...", public))
        done = subprocess.run(["ssh-keygen", "-l", "-f", file], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "ED25519" in done.stdout, done
        command = re.search(r'command="([^"]*)"', line)
        assert command and line.startswith("restrict,")
        assert "--root" in parsed(shlex.split(command[1])[1:])


def test_settings_files_have_settings(tmp_path: Path) -> None:
    for _, block in blocks("toml"):
        table = tomllib.loads(block.text)
        if block.title == "config.toml":
            assert table.keys() <= {"hosts", "jobs", *(setting.key for setting in SETTINGS)}
            assert all(host.keys() <= set(HOST_KEYS) for host in table.get("hosts", {}).values())
            (tmp_path / "config.toml").write_text(block.text)
            read = read_jobs(str(tmp_path / "config.toml"), {"HOME": str(tmp_path)})
            assert read.keys() == table.get("jobs", {}).keys()
        else:
            assert block.title.endswith("daemon.toml")  # rdc serve --check reads it in the example


def test_each_option_in_the_text_exists() -> None:
    known = set(REFUSED_RSYNC_OPTIONS) | {"--version", "--man", "--help"}
    for verb in VERBS:
        for group in load_verb(verb).OPTIONS:
            known |= {name for option in group.options for name in option.names}
    for script in (
        *(TOP / "bench").glob("*.py"),
        *map((TOP / "scripts").joinpath, ("build_wheels.py", "docs", "test")),
    ):
        known |= set(re.findall(r"--[a-z-]+", script.read_text()))
    for path in pages():
        prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`]+)`", prose):
            if code.startswith(
                ("sudo ", "apt-get", "pip", "loginctl", "xdelta", "inotifywait", "scp", "rsync ", "ssh ")
            ):
                continue
            for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", code):
                assert name in known | {"--root"}, (path, name)


def test_commands_in_sentences_have_options_that_exist() -> None:
    checked = 0
    for path in pages():
        prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`rdc ([^`|]+)`", prose):
            verb, *words = shlex.split(code)
            if verb in VERBS and not set(words) & REFUSED_RSYNC_OPTIONS.keys():
                groups = load_verb(verb).OPTIONS
                valued = {
                    name
                    for group in groups
                    for option in group.options
                    if option.metavar
                    for name in option.names
                }
                value = ["1"] if words and words[-1] in valued else []
                parse_words([*words, *value], groups, {}, command=code)
                checked += 1
    assert checked > 40


def test_the_first_two_commands_of_the_readme_do_the_job_and_test_it() -> None:
    first, second, *_ = re.findall(r"^ {4}(\S.*)$", (TOP / "README.md").read_text(), re.MULTILINE)
    assert first.startswith("scripts/rdc sync ")
    assert second == "scripts/test"
    assert os.access(TOP / "scripts" / "rdc", os.X_OK) and os.access(TOP / "scripts" / "test", os.X_OK)
