"""Clusters of two workers on loopback, in processes of their own. Dask's scheduler asks nobody who it is."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.project_paths import TOP

__all__ = ["TOKEN", "dask_cluster", "ray_cluster"]

BEGIN_SECONDS = 300

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
"""Environment of all that speaks with Ray. Without the token, its ports refuse everybody."""

RAY_HEAD = {
    # Else Ray takes the address of a network card, and its scheduler listens at all addresses.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A client gets a process of its own. Its server forks it, and gRPC's handlers of a fork end a third
    # of them on a busy machine, which is a fault of Ray.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}


@contextlib.contextmanager
def _running(words: list[str], log: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program with its children, which are killed at the end."""
    environ = {**os.environ, "HOME": str(home), "PYTHONPATH": str(TOP), **TOKEN, **RAY_HEAD}
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=TOP, env=environ, stdout=file, stderr=file, start_new_session=True
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    """A port that nobody else gets by chance: below those of the kernel, above those of Ray's workers."""
    while True:
        port = random.randrange(24_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def dask_cluster(top: Path) -> Iterator[str]:
    """Yields the URL. The file `scheduler.pid` in `top` has the process of the scheduler."""
    about = top / "scheduler.json"
    scheduler = [
        "scheduler",
        "--host=127.0.0.1",
        "--port=0",
        f"--scheduler-file={about}",
        "--dashboard-address=127.0.0.1:0",
    ]
    worker = ["worker", f"--scheduler-file={about}", "--nworkers=2", "--nthreads=1", "--host=127.0.0.1"]
    with _running(["-m", "dask", *scheduler], top / "log", top) as process:
        (top / "scheduler.pid").write_text(f"{process.pid}")
        end = time.monotonic() + BEGIN_SECONDS
        while not (about.exists() and about.read_bytes().strip().endswith(b"}")):
            assert process.poll() is None, (top / "log").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        address: str = json.loads(about.read_bytes())["address"]
        url = address.replace("tcp://", "dask://")
        with _running(
            ["-m", "dask", *worker, "--dashboard-address=127.0.0.1:0", f"--local-directory={top}"],
            top / "log",
            top,
        ):
            from distributed import Client

            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(2, BEGIN_SECONDS)
            yield url


@contextlib.contextmanager
def ray_cluster(top: Path) -> Iterator[str]:
    """Yields the URL of a client server. The link `ray` in `top` leads to what Ray writes, logs included."""
    # Paths of sockets have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray") as short, _ray_head(top, short) as url:
        (top / "ray").symlink_to(short)
        yield url


@contextlib.contextmanager
def _ray_head(top: Path, short: str) -> Iterator[str]:
    port = _free_port()
    words = [
        *["-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"],
        *["--node-ip-address=127.0.0.1", f"--port={_free_port()}", f"--ray-client-server-port={port}"],
        *["--include-dashboard=false", f"--object-store-memory={128 << 20}", f"--temp-dir={short}"],
    ]
    with _running(words, top / "log", top) as process:
        end = time.monotonic() + BEGIN_SECONDS
        while b"Ray runtime started" not in (top / "log").read_bytes():
            assert process.poll() is None, (top / "log").read_text()
            assert time.monotonic() < end, (top / "log").read_text()
            time.sleep(0.1)
        yield f"ray://127.0.0.1:{port}"
