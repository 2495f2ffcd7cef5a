"""`rdc install HOST`: puts rdc into a private directory of another machine."""

from __future__ import annotations

from collections.abc import Sequence

from rdc.cli.environment import HELP, RSH_EXAMPLE, Environment, OptionGroup, parse_words, read_command
from rdc.cli.verb import HelpText, waiting
from rdc.errors import ExitCode, UsageError, printable
from rdc.model.options import Option

SUMMARY = "install rdc on another machine over ssh, in a private directory"

OPTIONS = (
    OptionGroup(
        "Options",
        (
            Option(("-e", "--rsh"), "the remote shell (default: ssh)", "CMD"),
            Option(("--wheels",), "send the wheels in this directory, or this wheel", "DIR"),
            Option(("--remove",), "remove the installed versions and the link"),
            Option(("--list",), "list the installed versions"),
            Option(("-n", "--dry-run"), "list what would be sent; send nothing"),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc install [-e CMD] [--wheels=DIR] [-n] HOST
       rdc install [-e CMD] --list|--remove HOST

Examples:
  rdc install nas                          once; then: rdc sync src/ nas:dst/
  rdc install -e 'ssh -p 2222' me@nas      through another port
  rdc install --wheels=dist/ nas           to another kind of machine, with wheels made for it
  rdc install --remove nas                 remove it again

HOST needs Python 3.11 or newer. It needs no pip, compiler or network. rdc install writes to
~/.local/share/rdc there and links ~/.local/bin/rdc to it, unless that is another file. It checks the SHA-256
of each wheel before it unpacks any. The version in use stays until the new one has started. The previous
version is kept, too, for sessions that still run it.

If the remote shell is ssh, rdc sync and rdc watch look for rdc in PATH there, then in ~/.local/bin and in
~/.local/share/rdc. Without --wheels, the wheels are made from the packages installed here; HOST then needs
the same Python version, architecture and C library.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc install` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc install")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if len(parsed.operands) != 1:
        raise UsageError("rdc install takes one HOST (see rdc install --help)")
    if parsed.has("--remove") and parsed.has("--list"):
        raise UsageError("rdc install takes --remove or --list, not both (see rdc install --help)")
    host, command = parsed.operands[0], parsed.value("--rsh")
    shell = ("ssh",) if command is None else read_command(command, f"-e {command}", RSH_EXAMPLE)

    from rdc.install.install import ask_machine, list_versions, remove, send

    with waiting(environment, "connecting"):
        machine = ask_machine(shell, host)
    if parsed.has("--list"):
        environment.data(f"{printable_lines(list_versions(shell, host, machine))}\n")
        return ExitCode.OK
    if parsed.has("--remove"):
        if parsed.has("--dry-run"):
            raise UsageError("-n does not go with --remove; see rdc install --list HOST")
        environment.data(f"{host}: {printable_lines(remove(shell, host, machine))}\n")
        return ExitCode.OK
    from rdc.install.wheels import chosen_wheels

    wheels = chosen_wheels(machine, parsed.value("--wheels"))
    if parsed.has("--dry-run"):
        for wheel in wheels:
            environment.data(f"{wheel.sha256}  {printable(wheel.name)}\n")
        return ExitCode.OK
    with waiting(environment, "installing"):
        answer = send(shell, host, machine, wheels)
    environment.data(f"{host}: {printable_lines(answer)}\n")
    return ExitCode.OK


def printable_lines(text: str) -> str:
    """Return what the remote side said, without control characters."""
    return "\n".join(printable(line) for line in text.splitlines())
