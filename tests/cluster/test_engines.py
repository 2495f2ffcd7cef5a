"""Engines with two workers each: `scan --cluster` writes the document of one scan, also if a worker dies.

tests/cluster/test_object_engines.py has Ray's client server.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from rdc.cluster import engines
from rdc.cluster.engines import EngineUrl, local_processes, opened_engine, parse_engine
from rdc.errors import ExitCode, RdcError, UsageError
from tests.cluster.clusters import dask_cluster
from tests.cluster.run_program import program
from tests.support.trees.linked_tree import linked_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    linked_tree(tmp_path / "tree", 3)
    return tmp_path / "tree"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("url", ["processes:2", "dask", "ray:local"], indirect=True)
def test_a_cluster_writes_the_document_of_one_scan(tree: Path, tmp_path: Path, url: str) -> None:
    whole = program(tmp_path, "rdc", "scan", "--json", "--no-catalog", tree)
    out = tmp_path / "parts"
    done = program(tmp_path, "rdc", "scan", "--json", f"--cluster={url}", "-o", out, tree)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == whole.stdout
    assert sorted(os.listdir(out)) == [f"slice-{number}-of-8.rdcscan" for number in range(1, 9)]


def test_parts_that_are_there_stay(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "parts"
    words = ("rdc", "scan", "--json", "--cluster=processes:2", "-o", out, tree)
    done = program(tmp_path, *words)
    before = {name: (out / name).stat().st_mtime_ns for name in os.listdir(out)}
    assert len(before) == 8
    again = program(tmp_path, *words)
    assert (again.stdout, again.stderr, again.returncode) == (done.stdout, "", 0)
    assert {name: (out / name).stat().st_mtime_ns for name in os.listdir(out)} == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("url", ["processes:2", "dask", "ray:local"], indirect=True)
def test_a_killed_worker_changes_nothing(tree: Path, tmp_path: Path, url: str) -> None:
    whole = program(tmp_path, "rdc", "scan", "--json", "--no-catalog", tree)
    (tmp_path / "parts").mkdir()
    done = program(tmp_path, "tests.cluster.killed_scan", url, tree, tmp_path / "parts", tmp_path / "marks")
    assert done.stdout == whole.stdout, done.stderr
    assert os.listdir(tmp_path / "marks") == ["0"]


def many_files(tree: Path) -> None:
    for number in range(400):
        (tree / f"many {number}").mkdir()
        (tree / f"many {number}" / "file").write_bytes(os.urandom(100_000))


def wait_for_parts(process: subprocess.Popen[str], out: Path) -> None:
    while not out.is_dir() or len(os.listdir(out)) < 3:
        assert process.poll() is None
        time.sleep(0.02)


def test_a_cluster_that_goes_away_leaves_parts_to_go_on_from(tree: Path, tmp_path: Path) -> None:
    many_files(tree)
    out = tmp_path / "p"
    words = ["rdc", "scan", "--json", "--slices=200", "-o", str(out), str(tree)]
    (tmp_path / "dask").mkdir()
    with dask_cluster(tmp_path / "dask") as url:
        command = [sys.executable, "-m", *words, f"--cluster={url}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for_parts(process, out)
        os.killpg(int((tmp_path / "dask" / "scheduler.pid").read_text()), signal.SIGKILL)
        stdout, err = process.communicate(timeout=300)
    assert (process.returncode, stdout) == (ExitCode.PARTIAL, "")
    assert err.startswith("rdc: the workers ended, and ")
    assert "run again to go on from the others" in err
    assert err.count("\n") == 1
    done = program(tmp_path, *words, "--cluster=processes:2")
    assert done.stdout == program(tmp_path, "rdc", "scan", "--json", "--no-catalog", tree).stdout


def test_ctrl_c_ends_no_process_that_begins() -> None:
    with local_processes(2) as pool:
        for _ in range(2):
            pool.submit(os.getpid)
        for process in multiprocessing.active_children():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)
        assert pool.submit(os.getpid).result(timeout=300) != os.getpid()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_ctrl_c_ends_all_and_keeps_the_parts(tree: Path, tmp_path: Path) -> None:
    """As from a terminal: the signal reaches all processes of the group."""
    many_files(tree)
    words = [
        "rdc",
        "scan",
        "--json",
        "--cluster=processes:2",
        "--slices=200",
        "-o",
        str(tmp_path / "p"),
        str(tree),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for_parts(process, tmp_path / "p")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert err.startswith("rdc: interrupted; the parts in ")
    assert err.count("\n") == 1
    assert all(name.endswith("-of-200.rdcscan") for name in os.listdir(tmp_path / "p"))
    with pytest.raises(ProcessLookupError):
        while True:  # the workers are gone, or go now
            os.killpg(process.pid, 0)
            time.sleep(0.02)
    done = program(tmp_path, *words)
    assert done.stdout == program(tmp_path, "rdc", "scan", "--json", "--no-catalog", tree).stdout


def test_a_sample_of_the_soak(tmp_path: Path) -> None:
    done = program(tmp_path, "scripts.soak_slices", "--rounds=3", "--trees=2", "--engines=processes")
    assert done.returncode == 0, done.stderr
    assert "processes: 3 splits" in done.stdout


def test_urls_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_engine("processes:12") == EngineUrl("processes", "", 12)
    assert parse_engine("dask://node-1.local:8786") == EngineUrl("dask", "node-1.local:8786")
    assert parse_engine("ray://[::1]:10001") == EngineUrl("ray", "[::1]:10001")
    assert parse_engine("ray:local") == EngineUrl("ray", "local")
    assert parse_engine("processes:1").is_here
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    for url in ("dask://h:1", "ray://h:1", "ray:local"):
        name = url[:4].strip(":")
        with pytest.raises(UsageError, match=rf"^--cluster={url} needs {name}: .*'rdc-sync\[{name}\]'"):
            parse_engine(url)


@pytest.mark.parametrize(
    "url",
    [
        *[
            "",
            "processes:0",
            "processes:2000",
            "processes:x",
            "dask://h",
            "dask://h:0",
            "dask://h:99999",
            "spark://h:1",
        ],
        *[
            "ray:elsewhere",
            "dask://h:1/path",
            "dask://user:secret@h:1",
            "tcp://h:1",
            "dask://h h:1",
            "ray://h:1?token=secret",
        ],
    ],
)
def test_other_urls_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--cluster: expected processes:N, dask://HOST:PORT") as raised:
        parse_engine(url)
    assert "secret" not in str(raised.value)


def test_a_scheduler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 0.3)
    with (
        pytest.raises(
            RdcError, match=rf"^dask://{address}: expected a scheduler, found none: .*check host"
        ) as raised,
        opened_engine(EngineUrl("dask", address)),
    ):
        pass
    assert raised.value.code is ExitCode.UNREACHABLE


@pytest.mark.parametrize("deaths", [0, 1, 2, 3])
def test_a_client_server_that_loses_its_process_is_asked_again(
    deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def connect(address: str, **_: object) -> None:
        asked.append(address)
        if len(asked) <= deaths:
            raise ConnectionAbortedError("Initialization failure from server:\nof a fork")

    monkeypatch.setattr("ray.init", connect)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    monkeypatch.setattr("ray.cluster_resources", lambda: {"CPU": 2.0})
    lost = pytest.raises(RdcError, match=r"^ray://h:1: .*of a fork; check host, port and token$")
    with lost if deaths == 3 else contextlib.nullcontext(), opened_engine(EngineUrl("ray", "h:1")) as engine:
        assert engine.slots == 2
    assert asked == ["ray://h:1"] * min(deaths + 1, 3)


def test_a_ray_that_is_not_there_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(address: str, **_: object) -> None:
        asked.append(address)
        warnings.warn("Ensure that the port is reachable", stacklevel=1)
        raise ConnectionError("ray client connection timeout")

    asked: list[str] = []
    monkeypatch.setattr("ray.init", connect)
    with (
        warnings.catch_warnings(action="error"),
        pytest.raises(RdcError, match=r"none: ray client connection timeout; check host, port and token$"),
        opened_engine(EngineUrl("ray", "h:1")),
    ):
        pass
    assert asked == ["ray://h:1"]
