"""Runs the examples of a page, and compares what they print with what the page shows.

A block ```console has commands after "$ " and below them what they print. All blocks of a page run in order,
each in the home directory of a machine: the one of its prompt ("server$ "), or that its title names ("on the
server"), else "laptop". What ends in "&", or stands in a block whose title has the words "another terminal",
runs beside the following commands until the page ends. A block
```toml title="daemon.toml" is written to that file. A comment <!-- setup: COMMANDS --> runs unseen.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scripts.manual.notes import DOCS, TOP

FENCE = re.compile(
    r"^<!-- setup:(?P<setup>.*?)-->$"
    r"|^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
HERE = "laptop"
"""The machine of a block that names none."""

SECONDS = 60
"""Seconds after which a command of an example is taken for stuck."""

PATIENCE = 2
"""Seconds that a daemon or a watch gets before the next command. `sleep 2` in an example waits as long."""


@dataclass(frozen=True)
class Command:
    prompt: str
    machine: str
    line: str
    printed: str
    """The output that the page shows below the command."""


@dataclass(frozen=True)
class Block:
    kind: str
    title: str
    text: str
    span: tuple[int, int]
    """The position of the block's text in the page."""

    @property
    def commands(self) -> list[Command]:
        """The commands of a console block. A line that ends in a backslash goes on in the next one."""
        found: list[tuple[str, str, list[str]]] = []
        lines = iter(self.text.splitlines())
        for line in lines:
            prompted = re.match(r"(\w*)\$ (.*)", line)
            if prompted:
                command = prompted[2]
                while command.endswith("\\"):
                    command += "\n" + next(lines)
                found.append((prompted[1], command, []))
            elif found:
                found[-1][2].append(line)
        return [
            Command(f"{name}$ ", name or self.machine, command, "\n".join(printed))
            for name, command, printed in found
        ]

    @property
    def beside(self) -> bool:
        """Return whether it runs beside the following blocks."""
        return "another terminal" in self.title

    @property
    def machine(self) -> str:
        found = re.search(r"on the (\w+)", self.title)
        return found[1] if found else HERE


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page. A setup comment is a block of kind "setup"."""
    blocks = []
    for found in FENCE.finditer(page):
        if found["setup"] is not None:
            blocks.append(Block("setup", "", found["setup"].strip(), found.span("setup")))
        else:
            blocks.append(Block(found["kind"], found["title"] or "", found["text"], found.span("text")))
    return blocks


def has_examples(page: str) -> bool:
    """Return whether any command of the page runs."""
    return any(block.kind == "console" for block in blocks_of(page))


def pages() -> list[Path]:
    """All pages that people wrote: README.md, and those below docs/."""
    return [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


@dataclass
class Machines:
    """A directory with a home for each machine of a page, and what runs on them."""

    top: Path
    program: Path
    """The directory that holds the rdc to run."""
    port: int = 0
    patience: int = PATIENCE
    beside: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def home(self, machine: str) -> Path:
        home = self.top / machine
        home.mkdir(exist_ok=True)
        return home

    def environ(self, machine: str) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RDC_", "XDG_"))}
        return kept | {
            "HOME": str(self.home(machine)),
            "PATH": f"{self.program}:{self.top}/bin:{os.environ['PATH']}",
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONWARNINGS": "ignore",
            "RDC_REPOSITORY": str(TOP),
        }

    def translated(self, line: str) -> str:
        """Return the text of an example with this host in place of the named one, and a port of the system's
        choice."""
        line = line.replace(f"sleep {PATIENCE}", f"sleep {self.patience}")
        line = line.replace("rdc://backup.example.org/", f"rdc://localhost:{self.port}/")
        line = line.replace("trust backup.example.org ", f"trust localhost:{self.port} ")
        if os.geteuid() == 0:  # a daemon does not stay root by accident
            line = line.replace("serve --config=daemon.toml", "serve --config=daemon.toml --allow-root")
        return line.replace(":8730", f":{self.port}")

    def settings(self, text: str, home: Path) -> str:
        """Return a settings file of an example. A daemon listens on the page's port, named or not."""
        text = self.translated(text).replace("/home/me", str(home))
        return text if "listen" in text or "[modules" not in text else f'listen = ":{self.port}"\n{text}'

    def shown(self, text: str) -> str:
        """Return what was printed, in the form in which the page shows it."""
        if self.port:
            text = text.replace(f"localhost:{self.port}", "backup.example.org")
            text = text.replace(f":{self.port}", ":8730")
        for home in self.top.iterdir():
            text = text.replace(str(home), "/home/me")
        return text

    def run(self, line: str, machine: str) -> str:
        """Run a command in a terminal that draws nothing, as a reader would see what it prints."""
        near, far = pty.openpty()
        modes = termios.tcgetattr(far)
        modes[1] &= ~termios.OPOST  # lines end as they are printed
        termios.tcsetattr(far, termios.TCSANOW, modes)
        process = subprocess.Popen(
            ["bash", "-c", self.translated(line)],
            cwd=self.home(machine),
            env=self.environ(machine),
            stdin=subprocess.DEVNULL,
            stdout=far,
            stderr=far,
        )
        os.close(far)
        try:
            printed = b"".join(_printed(near, process))
        finally:
            process.kill()
            process.wait()
            os.close(near)
        return self.shown(printed.decode("utf-8", "replace")).rstrip("\n")

    def start(self, line: str, machine: str) -> None:
        """Start what runs until the page ends, and give it a moment."""
        self.beside.append(
            subprocess.Popen(
                ["bash", "-c", self.translated(line)],
                cwd=self.home(machine),
                env=self.environ(machine),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        time.sleep(self.patience)

    def end(self) -> None:
        for process in self.beside:
            os.killpg(process.pid, signal.SIGTERM)
        for process in self.beside:
            process.wait(SECONDS)


def _printed(terminal: int, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield what a process and its children print, until it has ended and nothing more arrives. Raises
    TimeoutExpired after SECONDS."""
    end = time.monotonic() + SECONDS
    printed = select.poll()  # select.select takes only descriptors below 1,024
    printed.register(terminal, select.POLLIN)
    while True:
        over = process.poll() is not None
        if printed.poll(0 if over else 50):
            try:
                part = os.read(terminal, 1 << 16)
            except OSError:  # Linux ends a terminal without a process by EIO
                part = b""
            if not part:
                process.wait(max(0.0, end - time.monotonic()))
                return
            yield part
        elif over:
            return
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, SECONDS)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        port: int = listening.getsockname()[1]
        return port


def run_page(page: str, program: Path, patience: int = PATIENCE) -> Iterator[tuple[Block, str]]:
    """Run the examples of a page. Yield each console block with the text that it should have."""
    with tempfile.TemporaryDirectory(prefix="rdc-docs-") as directory:
        machines = Machines(Path(directory), program, _free_port(), patience)
        _make_ssh(Path(directory))
        try:
            for block in blocks_of(page):
                if block.kind == "setup":
                    machines.run(block.text, HERE)
                elif block.kind == "toml" and block.title.endswith(".toml"):
                    machine = re.search(r"on the (\w+)", block.title)
                    home = machines.home(machine[1] if machine else HERE)
                    name = block.title.rpartition(" ")[2]
                    (home / name).write_text(machines.settings(block.text, home))
                elif block.kind == "console":
                    yield block, _run_block(block, machines)
        finally:
            machines.end()


def _run_block(block: Block, machines: Machines) -> str:
    lines = []
    for command in block.commands:
        lines.append(command.prompt + command.line)
        if block.beside or command.line.endswith(" &"):
            machines.start(command.line.removesuffix(" &"), command.machine)
            printed = command.printed
        else:
            printed = machines.run(command.line, command.machine)
        lines += [printed] if printed else []
    return "\n".join(lines) + "\n"


def _make_ssh(directory: Path) -> None:
    """Stand-ins for ssh, which runs the command in the home of the machine "server", and for scp."""
    programs = directory / "bin"
    programs.mkdir()
    (directory / "server").mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nshift\nHOME={directory}/server\ncd "$HOME"\nexec sh -c "$*"\n')
    (programs / "scp").write_text(
        f"#!/bin/sh\nfrom=$2 to=$3\n"
        f"case $from in server:*) from={directory}/server/${{from#server:}} ;; esac\n"
        f'case $to in server:*) to={directory}/server/${{to#server:}} ;; esac\nexec cp "$from" "$to"\n'
    )
    for name in ("ssh", "scp"):
        (programs / name).chmod(0o755)


NUMBER = re.compile(r"\d[\d,.]*(?: ?(?:[kKMGT]?i?B|s|ms|min)(?:/s)?\b)?")


def comparable(text: str) -> str:
    """Return a text without what differs from run to run: figures, digests, widths of columns, order of
    lines."""
    text = re.sub(r"\b[0-9a-f]{16,}\b", "HEX", text)
    text = NUMBER.sub("N", text)
    text = re.sub(r"[─━]+", "-", text)
    return "\n".join(sorted(re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines()))


def differences(page: str, program: Path) -> list[tuple[str, str]]:
    """Return what a page shows and what its commands print, wherever these differ. The second try is a slow
    one."""
    found: list[tuple[str, str]] = []
    for patience in (PATIENCE, 10 * PATIENCE):
        ran = [
            (comparable(block.text), comparable(text)) for block, text in run_page(page, program, patience)
        ]
        found = [(shown, printed) for shown, printed in ran if shown != printed]
        if not found:
            break
    return found


def refreshed(page: str, program: Path) -> str:
    """Return the page with what its commands print now. What differs in figures alone stays."""
    changes = []
    for block, text in run_page(page, program):
        if comparable(block.text) != comparable(text):
            changes.append((block.span, text))
    for (start, stop), text in reversed(changes):
        page = page[:start] + text + page[stop:]
    return page
