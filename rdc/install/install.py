"""Talks to the far machine: asks what it is, and sends it the program and the wheels."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import subprocess
from collections.abc import Mapping

from rdc.errors import CommandMissingError, ExitCode, RdcError, StreamError, UsageError, printable
from rdc.install.wheels import Machine, Wheel, version_name
from rdc.lean.records import Record
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_PIPE_BYTES = 64 << 10


class Ended(Record):
    """The output and status of a program that ran."""

    code: int
    """Its exit status, negative for a signal."""
    out: bytes
    err: bytes
    cut: bool
    """It printed more than it may, and was killed."""


def run_bounded(argv: Sequence[str], data: bytes, most: int) -> Ended:
    """Run `argv` with `data` as its input until it ends, or until it has printed more than `most` bytes to
    stdout or stderr. A program that reads no further loses the rest of its input. Raises OSError."""
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise ValueError("all three are pipes")
    printed = {stdout.fileno(): bytearray(), stderr.fileno(): bytearray()}
    left, cut = memoryview(data), False
    with process, selectors.DefaultSelector() as waiting:
        for fd in printed:
            waiting.register(fd, selectors.EVENT_READ)
        os.set_blocking(stdin.fileno(), False)
        waiting.register(stdin, selectors.EVENT_WRITE)
        while waiting.get_map() and not cut:
            for key, _ in waiting.select():
                if key.fileobj is stdin:
                    left = _written(key.fd, left)
                    if not left:
                        waiting.unregister(stdin)
                        stdin.close()
                    continue
                some = os.read(key.fd, _PIPE_BYTES)
                printed[key.fd] += some
                if not some:
                    waiting.unregister(key.fd)
                cut = cut or len(printed[key.fd]) > most
        if cut:
            process.kill()
        out, err = (bytes(printed[stream.fileno()]) for stream in (stdout, stderr))
    return Ended(process.returncode, out, err, cut)


def _written(fd: int, data: memoryview) -> memoryview:
    """Write some of `data`. Return what is left: nothing if nobody reads it."""
    try:
        return data[os.write(fd, data[:_PIPE_BYTES]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]


ANSWER_BYTES = 1 << 20
"""Most bytes that the far machine may print, its shell's start-up files included."""

_FACTS = (
    "import json,os,platform,sys,sysconfig;"
    "u=os.uname();"
    "sys.version_info>=(3,11) or sys.exit(3);"
    "print(json.dumps(dict(system=u.sysname,architecture=u.machine,python=sys.version_info[:2],"
    'libc="-".join(platform.libc_ver()),soabi=sysconfig.get_config_var("SOABI") or "",'
    "executable=sys.executable)))"
)

_PROBE = f"""
for python in python3 python3.11 python3.12 python3.13 python3.14; do
    command -v "$python" >/dev/null 2>&1 && "$python" -I -c {shlex.quote(_FACTS)} 2>/dev/null && exit 0
done
echo none
"""


def ask_machine(shell: tuple[str, ...], host: str) -> Machine:
    """Return the facts of the far machine. RdcError, of one line, without Python 3.11 there."""
    answer = _far(shell, host, "exec sh", _PROBE.encode()).strip()
    # A far shell's start-up files may print something first.
    line = answer.splitlines()[-1] if answer else ""
    if line == "none":
        raise CommandMissingError(
            f"{host} has no Python 3.11 or newer, which rdc needs; install python3 there"
        )
    try:
        facts = json.loads(line)
        major, minor = facts["python"]
        machine = Machine(
            str(facts["system"]),
            str(facts["architecture"]),
            (int(major), int(minor)),
            str(facts["libc"]),
            str(facts["soabi"]),
            str(facts["executable"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StreamError(f"{host} gave no account of itself: {printable(line[:200])}") from error
    if not os.path.isabs(machine.executable) or not machine.executable.isprintable():
        raise StreamError(f"{host} names no path of its Python")
    return machine


def send(shell: tuple[str, ...], host: str, machine: Machine, wheels: tuple[Wheel, ...]) -> str:
    """Install the wheels there. Returns what the new version answers to --version."""
    order = {
        "action": "install",
        "name": version_name(__version__, wheels),
        "wheels": [{"name": w.name, "size": len(w.data), "sha256": w.sha256} for w in wheels],
    }
    return _obey(shell, host, machine, order, b"".join(wheel.data for wheel in wheels))


def remove(shell: tuple[str, ...], host: str, machine: Machine) -> str:
    """Remove all that was installed there. Returns a line that says so."""
    return _obey(shell, host, machine, {"action": "remove"}, b"")


def list_versions(shell: tuple[str, ...], host: str, machine: Machine) -> str:
    """Return the names of the installed versions, one a line."""
    return _obey(shell, host, machine, {"action": "list"}, b"")


def _obey(
    shell: tuple[str, ...], host: str, machine: Machine, order: Mapping[str, object], wheels: bytes
) -> str:
    with open(os.path.join(os.path.dirname(__file__), "far_program.py"), "rb") as file:
        program = file.read()
    # The program comes by stdin, so that the command has no line break and no quote that csh or fish
    # reads otherwise.
    loader = f"import sys;exec(compile(sys.stdin.buffer.read({len(program)}),sys.argv[0],sys.argv[1]))"
    command = f"exec {shlex.quote(machine.executable)} -I -c {shlex.quote(loader)} exec"
    return _far(shell, host, command, program + json.dumps(order).encode() + b"\n" + wheels).strip()


def _far(shell: tuple[str, ...], host: str, command: str, data: bytes) -> str:
    """Run one command line of the far shell with `data` as its stdin. Returns its stdout."""
    if not host or host.startswith("-") or not host.isprintable() or any(c.isspace() for c in host):
        raise UsageError(f"'{printable(host)}' is not a host name")
    try:
        ended = run_bounded([*shell, host, command], data, ANSWER_BYTES)
    except FileNotFoundError as error:
        raise CommandMissingError(f"there is no program {shell[0]} here") from error
    if ended.cut:
        raise RdcError(
            f"{host}: expected an answer of at most {ANSWER_BYTES} bytes, found more; look at what its shell"
            " prints when it starts",
            code=ExitCode.STREAM,
        )
    if ended.code:
        lines = ended.err.decode("utf-8", "replace").strip().splitlines()
        last = printable(lines[-1]) if lines else f"{shell[0]} ended with status {ended.code}"
        raise RdcError(f"{host}: {last.removeprefix('rdc install: ')}", code=ExitCode.STREAM)
    return ended.out.decode("utf-8", "replace")
