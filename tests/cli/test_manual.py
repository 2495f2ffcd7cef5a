"""Completions and the man page come from the option tables, and shells and mandoc accept them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from rdc.cli.manual import VERB_EVENTS, manual
from rdc.cli.verb import VERBS, load_verbs
from rdc.errors import ExitCode
from scripts.manual.events import EVENTS, MODES, events_of
from scripts.manual.notes import notes
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.running.syncing import command

SHELLS = ("bash", "zsh", "fish")


def printed(shell: str) -> str:
    ended = command("completions", shell)
    assert (ended.code, ended.err) == (0, "")
    return ended.out


def program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"these tests need {name} (Debian: apt-get install {name})"
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_table(verb: str) -> None:
    """Completions, settings and the man page need this table."""
    module = load_verbs()[verb]
    assert any(option.key == "--help" for group in module.OPTIONS for option in group.options)
    assert module.SUMMARY and not module.SUMMARY.endswith(".")


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in SHELLS])
def test_each_shell_can_read_its_rules(shell: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text(printed(shell))
    done = subprocess.run([program(shell), "-n", rules], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_all_verbs_and_options_are_in_the_rules(shell: str) -> None:
    rules = printed(shell)
    for name, verb in load_verbs().items():
        assert re.search(rf"\b{name}\b", rules)
        for group in verb.OPTIONS:
            for option in group.options:
                for spelled in option.names:
                    wanted = spelled
                    if shell == "fish":
                        wanted = f"-l {spelled[2:]}" if spelled.startswith("--") else f"-s {spelled[1:]}"
                    assert wanted in rules, (name, spelled)


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("rdc", "sig"), {"signature"}),
        (("rdc", ""), {*VERBS, "--help", "--version"}),
        (("rdc", "sync", "--exc"), {"--exclude=", "--exclude-from=", "--exclude-caches"}),
        (("rdc", "sync", "--no-fs"), {"--no-fsync"}),
        (("rdc", "keys", ""), {"new", "show", "trust", "distrust"}),
        (("rdc", "keys", "tr"), {"trust"}),
        (("rdc", "sync", "dir"), set()),
        (("rdc", "sync", "a", "--delete-e"), {"--delete-excluded"}),
        (("rdc", "sync", "--stderr", "=", "c"), {"client"}),
        (("rdc", "sync", "--help", "="), {"all"}),
        (("rdc", "sync", "a", "na"), {"nas:", "nas2:", "names"}),
        (("rdc", "install", "na"), {"nas", "nas2"}),
        (("rdc", "dupes", "na"), set()),
        (("rdc", "sync", "nas", ":", "pho"), {"photos/", "phone.txt"}),
        (("rdc", "unite", "a", "nas", ":", "/srv/pho"), {"photos/", "phone.txt"}),
        (("rdc", "sync", "a/nas", ":", "pho"), set()),
        (("rdc", "sync", "nas2", ":", "pho"), set()),
    ],
)
def test_bash_offers_what_fits(typed: tuple[str, ...], offered: set[str], tmp_path: Path) -> None:
    """Bash divides words at ':' and '='. ssh has a shared connection to nas, and none to nas2."""
    words = " ".join(f"'{word}'" for word in typed)
    line = " ".join(typed).replace(" = ", "=").replace(" =", "=").replace(" : ", ":")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host nas nas2\n  User me\nHost *\n")
    (tmp_path / "names").touch()
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin/ssh"
    ssh.write_text('#!/bin/sh\n[ "$1" = -O ] && { [ "$3" = nas ]; exit; }\necho photos/; echo phone.txt\n')
    ssh.chmod(0o755)
    script = (
        printed("bash")
        + f"\ncompopt() {{ :; }}\nCOMP_WORDS=({words}) COMP_CWORD={len(typed) - 1}\n"
        + f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}\n_rdc\n"
        + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        [program("bash"), "--norc", "-c", script], capture_output=True, text=True, env=environ, cwd=tmp_path
    )
    assert done.stderr == ""
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/rdc"),
        ("zsh", ".zfunc/_rdc"),
        ("fish", ".config/fish/completions/rdc.fish"),
    ],
)
def test_completions_and_man_pages_are_installed_for_a_user(
    shell: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    for words in ((), (shell,)):
        ended = command("completions", "--install", *words, process=True)
        assert ended.code == ExitCode.OK and f"{tmp_path}/{place}\n" in ended.out
    assert (tmp_path / place).read_text() == printed(shell)
    pages = tmp_path / ".local/share/man/man1"
    assert {path.name for path in pages.iterdir()} == {"rdc.1", *(f"rdc-{name}.1" for name in VERBS)}
    (tmp_path / place).write_text("mine")
    ended = command("completions", "--install", process=True)
    assert ended.code == ExitCode.USAGE and place in ended.err
    assert (tmp_path / place).read_text() == "mine"


def test_an_unknown_shell_gets_no_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    ended = command("completions", "--install", process=True)
    assert ended.code == ExitCode.USAGE and "followed by bash, zsh, fish" in ended.err


def test_zsh_shows_no_stray_backslashes() -> None:
    assert "\\\\" not in printed("zsh")


class Zsh:
    """An interactive zsh on a pseudo-terminal."""

    def __init__(self, home: Path) -> None:
        functions = home / "functions"
        functions.mkdir()
        (functions / "_rdc").write_text(printed("zsh"))
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            environment = {"HOME": str(home), "TERM": "dumb", "PATH": os.environ["PATH"], "COLUMNS": "200"}
            os.execve(program("zsh"), ["zsh", "-f", "-i"], environment)  # noqa: S606 - a child of ours
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", 100, 200, 0, 0))
        self.said = ""
        self.type(
            f"fpath=({functions} $fpath); autoload -U compinit; compinit -u -D; setopt no_beep no_auto_menu\n"
            "print U'P'\n"
        )
        self.read_until("UP")

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read_until(self, *words: str) -> None:
        """Reads until zsh has shown all `words` since the last call."""
        deadline = time.monotonic() + WAIT_SECONDS
        self.said = ""
        while not all(word in self.said for word in words):
            poll = select.poll()  # select takes no descriptor past 1,023
            poll.register(self._fd, select.POLLIN)
            ready = poll.poll(200)
            assert time.monotonic() < deadline, (words, self.said)
            if ready:
                self.said += os.read(self._fd, 65536).decode(errors="replace")

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


@pytest.mark.needs("zsh")
def test_zsh_offers_what_fits(tmp_path: Path) -> None:
    """TAB completes verbs, their words, options with explanations, and file names."""
    (tmp_path / "keyfile.pem").touch()
    zsh = Zsh(tmp_path)
    try:
        for typed, offered in (
            ("rdc sig", ("signature",)),
            ("rdc ", tuple(VERBS)),
            ("rdc keys ", ("new", "show", "trust", "distrust")),
            ("rdc sync --no-o", ("--no-o ", "--no-owner", "never")),
            ("rdc sync --exclude-f", ("--exclude-from=",)),
            ("rdc keys --ad", ("--add",)),
            ("rdc keys trust name keyf", ("keyfile.pem",)),
            ("rdc serve --config=keyf", ("keyfile.pem",)),
        ):
            zsh.type(typed + "\t")
            zsh.type("\t" * (len(offered) > 1))
            zsh.read_until(*offered)
            zsh.type("\x15")
    finally:
        zsh.close()


@pytest.mark.needs("fish")
def test_fish_offers_what_fits(tmp_path: Path) -> None:
    (tmp_path / "rdc.fish").write_text(printed("fish"))
    script = f"source {tmp_path}/rdc.fish; complete -C 'rdc sync --exclude-f'; complete -C 'rdc keys tr'"
    done = subprocess.run(
        [program("fish"), "--no-config", "-c", script],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path)},
    )
    offered = {line.split("\t")[0] for line in done.stdout.splitlines()}
    assert "--exclude-from=" in offered or "--exclude-from" in offered
    assert "trust" in offered


def test_another_shell_is_refused() -> None:
    for words in ((), ("tcsh",), ("bash", "zsh")):
        assert command("completions", *words).code == ExitCode.USAGE


@pytest.mark.needs("mandoc")
def test_the_man_page_has_no_faults(tmp_path: Path) -> None:
    page = tmp_path / "rdc.1"
    ended = command("--man")
    assert (ended.code, ended.err) == (0, "")
    page.write_text(ended.out)
    done = subprocess.run([program("mandoc"), "-Tlint", "-Wwarning", page], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def shown(help_text: str) -> list[str]:
    """Returns the words of a help text. Headings lose their colon, as in the man page."""
    return re.sub(r"(?m)^(Usage:|(\S.*):$)", r"\2", help_text).split()


@pytest.mark.needs("mandoc")
def test_the_man_page_says_all_that_help_says(tmp_path: Path) -> None:
    page = tmp_path / "rdc.1"
    page.write_text(manual(load_verbs()))
    done = subprocess.run(
        [program("mandoc"), "-Tascii", "-O", "width=200", page], capture_output=True, text=True
    )
    # mandoc writes bold and underlined letters by overstriking.
    text = " ".join(re.sub(r".\x08", "", done.stdout).split())
    for name, verb in load_verbs().items():
        assert f"RDC {name.upper()}" in text
        missing = [word for word in shown(verb.help_text()) if word not in text]
        assert missing == [], name
    assert "rdc(1)" in text.lower()


@pytest.mark.needs("mandoc")
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_page(verb: str, tmp_path: Path) -> None:
    ended = command(verb, "--man")
    assert (ended.code, ended.err) == (0, "")
    page = tmp_path / "page"
    page.write_text(ended.out)
    text = subprocess.run([program("mandoc"), "-T", "utf8", page], capture_output=True, text=True)
    assert (text.returncode, text.stderr) == (0, "")
    plain = re.sub(".\x08", "", text.stdout)
    assert "EXIT STATUS" in plain and all(str(int(code)) in plain for code in ExitCode)
    assert ("JSON EVENTS" in plain) == (verb in VERB_EVENTS)
    assert ("FILTERS" in plain) == ("--exclude" in plain)


@pytest.mark.parametrize("verb", EVENTS)
def test_the_page_has_every_event(verb: str) -> None:
    assert EVENTS.keys() == VERB_EVENTS.keys()
    assert {event.name for event in events_of(verb)} == set(VERB_EVENTS[verb])


@pytest.mark.parametrize("verb", EVENTS | MODES)
def test_every_noted_field_is_one_of_its_event(verb: str) -> None:
    """The man page prints the notes. A key that no event has would be promised in vain."""
    table = notes("events")
    for event in events_of(verb):
        noted = {**table.get(event.name, {}), **table.get(f"{verb}-{event.name}", {})}
        # The first lines and the items of several verbs share their notes.
        if event.name not in ("start", "item"):
            assert noted.keys() - {"event"} <= set(event.fields), event.name
