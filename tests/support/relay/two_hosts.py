"""Two hosts for syncs between them: each a process of this machine, behind a remote shell of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rdc.errors import ExitCode
from tests.support.project_paths import TOP
from tests.support.running.syncing import FAR, PSEUDO_SSH, Ended, command

__all__ = ["RELAY_SSH", "between", "hosts_shell", "summary"]

RELAY_SSH = f"{sys.executable} {TOP}/tests/support/children/relay_ssh.py"


def hosts_shell(place: Path, **options: str) -> str:
    """A remote shell that treats each host as `options` say, in words of relay_ssh."""
    script = place / "hosts-shell"
    cases = "".join(f'  {host}) exec {RELAY_SSH} {words} "$@";;\n' for host, words in options.items())
    script.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\nexec {PSEUDO_SSH} "$@"\n')
    script.chmod(0o755)
    return str(script)


def between(
    *words: str | Path, shell: str | Path = PSEUDO_SSH, program: str = FAR, process: bool = False
) -> Ended:
    """`rdc sync WORDS` with hosts that `shell` leads to."""
    line = ("sync", "--no-catalog", "-e", str(shell), "--remote-path", program)
    return command(*line, *words, process=process)


def summary(ended: Ended) -> dict[str, int]:
    """The summary of a run with --json that ended well."""
    assert (ended.code, ended.err) == (ExitCode.OK, ""), ended
    last: dict[str, int] = json.loads(ended.out.splitlines()[-1])
    return last
