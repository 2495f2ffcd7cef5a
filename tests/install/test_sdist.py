"""The source distribution: it holds the whole repository, and says what it needs without a compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.project_paths import TOP


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sdist")
    # A copy, because building writes beside the sources.
    copy = place / "copy"
    for name in tracked():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((TOP / name).read_bytes())
        (copy / name).chmod((TOP / name).stat().st_mode & 0o777)
    run([sys.executable, "-m", "build", "--sdist", "--outdir", str(place), str(copy)])
    (found,) = place.glob("*.tar.gz")
    return found


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True).stdout
    return [os.fsdecode(name) for name in listed.split(b"\0") if name and (TOP / os.fsdecode(name)).exists()]


def run(words: list[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **(environ or {})}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.needs("git")
def test_it_holds_every_file_of_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert set(tracked()) - held == set()


@pytest.mark.needs("git")
def test_its_name_is_that_of_the_package_and_its_description_is_whole(sdist: Path) -> None:
    assert re.fullmatch(r"rdc_sync-\d+\.\d+\.\d+\.tar\.gz", sdist.name)
    with tarfile.open(sdist) as archive:
        member = archive.extractfile(sdist.name.removesuffix(".tar.gz") + "/PKG-INFO")
        assert member is not None
        lines = member.read().decode().splitlines()
    for expected in ("Name: rdc-sync", "Requires-Python: >=3.11", "License-Expression: Apache-2.0"):
        assert expected in lines
    assert any(line.startswith("Keywords: ") for line in lines)
    assert sum(line.startswith("Classifier: Programming Language :: Python :: 3.") for line in lines) >= 3


@pytest.mark.needs("git")
def test_without_a_compiler_one_line_says_what_to_install(sdist: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    env = {**os.environ, "CC": "/bin/false"}
    command = [*words, f"--target={tmp_path / 'here'}", str(sdist)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert done.stderr.count("rdc: needs a C compiler and Python's headers") == 1, done.stderr
    assert not (tmp_path / "here").exists()


def test_without_its_c_modules_rdc_says_what_to_install(tmp_path: Path) -> None:
    """A copy of the sources is like this, and an update of Python leaves it so."""
    shutil.copytree(TOP / "rdc", tmp_path / "rdc", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "file").write_bytes(b"content")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}
    for words in (["signature", "file"], ["sync", "--no-catalog", "file", "copy"], ["--version"]):
        command = [sys.executable, "-m", "rdc", *words]
        done = subprocess.run(
            command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (ExitCode.USAGE, ""), done
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"rdc: {tmp_path / 'rdc'} lacks its C modules; install a C compiler"), line
