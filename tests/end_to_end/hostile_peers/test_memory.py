"""Whole processes before a source that tells of too much: what they use stays bounded, whoever dialled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.project_paths import CHILDREN

MOST_KB = 160_000
"""What a process may use that is told of 30,000 directories below a path of 16 KB: 480 MB if each were held
with its path. The program itself takes 40 MB."""

HOSTILE = [sys.executable, "-m", "tests.end_to_end.hostile_peers.hostile_source"]


def environment(place: Path, **more: str) -> dict[str, str]:
    return dict(os.environ, RDC_CATALOG="off", PLACE=str(place), **more)


MEASURED = [sys.executable, str(CHILDREN / "peak_memory.py")]


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ((), ExitCode.STREAM, "ended the stream early"),
        (
            ("--max-memory=8M",),
            ExitCode.FILE_IO,
            "more than the 8 MiB of memory that it may use; raise --max",
        ),
    ],
)
def test_a_client_that_fetches(tmp_path: Path, words: tuple[str, ...], code: ExitCode, line: str) -> None:
    peak = tmp_path / "peak"
    command = [
        *MEASURED,
        str(peak),
        sys.executable,
        "-m",
        "rdc",
        "sync",
        "-n",
        *words,
        "-e",
        " ".join(HOSTILE),
        "host:x/",
    ]
    process = subprocess.Popen(
        [*command, str(tmp_path / "copy")],
        env=environment(tmp_path, MESSAGES="2"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(), said.count("\n")) == (code, 1), said
    assert line in said
    assert int(peak.read_text()) < MOST_KB


@pytest.mark.parametrize(("words", "code"), [((), ExitCode.STREAM), (("--max-memory=8M",), ExitCode.FILE_IO)])
def test_a_server_that_receives(tmp_path: Path, words: tuple[str, ...], code: ExitCode) -> None:
    place, peak = tmp_path / "copy", tmp_path / "peak"
    server = subprocess.Popen(
        [*MEASURED, str(peak), sys.executable, "-m", "rdc", "serve", "--stdio", *words],
        env=environment(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    source = subprocess.Popen(
        HOSTILE, env=environment(place, ROLE="dials", MESSAGES="2"), stdin=server.stdout, stdout=server.stdin
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    server.stdout.close()
    found = server.wait()
    source.wait()
    assert found == code
    assert int(peak.read_text()) < MOST_KB
