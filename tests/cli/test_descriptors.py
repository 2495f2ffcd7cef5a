"""Commands that read trees give back all descriptors by themselves: what lies in cycles is closed when the
collector comes, which in a large process may be hundreds of runs later."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.cli.main import run
from rdc.errors import ExitCode
from tests.support.running.deduping import write_duplicates
from tests.support.running.fake_environment import FakeProcess
from tests.support.trees.descriptors import open_descriptors


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "words",
    [["scan"], ["dupes"], ["dedupe", "--hardlink"], ["dedupe", "--hardlink", "--apply"]],
    ids=" ".join,
)
@pytest.mark.usefixtures("uncollected")
def test_a_second_run_leaves_no_descriptor_open(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_duplicates(tmp_path / "tree", groups=1, copies=2, size=100_000)
    command = [*words, str(tmp_path / "tree")]
    assert run(command, FakeProcess().environment) == ExitCode.OK  # opens what is opened once and for all
    before = open_descriptors()
    assert run(command, FakeProcess().environment) == ExitCode.OK
    assert set(os.listdir("/proc/self/fd")) == before
