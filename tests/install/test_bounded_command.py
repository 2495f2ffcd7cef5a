"""What a far machine prints is bounded, and so is the time until that is known."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.install import install
from rdc.install.install import Ended, run_bounded


def python(program: str, data: bytes = b"", most: int = 1 << 16) -> Ended:
    return run_bounded([sys.executable, "-I", "-c", program], data, most)


def test_what_is_printed_comes_whole() -> None:
    data = os.urandom(3 << 20)
    program = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()); sys.exit('e')"
    assert python(program, data, most=4 << 20) == Ended(1, data, b"e\n", cut=False)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_is_cut(stream: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ended = python(f"import sys\nwhile True: sys.{stream}.buffer.write(bytes(1 << 16))")
    assert ended.cut
    assert ended.code < 0
    assert len(ended.out) + len(ended.err) <= (1 << 16) + (64 << 10)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


def test_input_that_nobody_reads_is_lost() -> None:
    assert python("print('a')", bytes(3 << 20)) == Ended(0, b"a\n", b"", cut=False)


def test_input_beside_output() -> None:
    """Neither side waits for the other."""
    program = "import sys\nsys.stdout.write('x' * 300_000)\nprint(len(sys.stdin.buffer.read()))"
    ended = python(program, bytes(400_000), most=1 << 20)
    assert ended.out == b"x" * 300_000 + b"400000\n"


@pytest.mark.parametrize(
    ("prints", "found"),
    [
        ("head -c 5000000 /dev/zero", "expected an answer of at most 1048576 bytes, found more"),
        ("python3 -c 'print(\"[\" * 100000)'", "gave no account of itself"),
    ],
)
def test_a_hostile_far_machine(prints: str, found: str, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text(f"#!/bin/sh\n{prints}\n")
    shell.chmod(0o755)
    with pytest.raises(RdcError, match=found) as ended:
        install.ask_machine((str(shell),), "host")
    assert ended.value.code is ExitCode.STREAM
