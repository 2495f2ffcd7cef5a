"""The source distribution: it holds the whole repository, and installs where there is no compiler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.project_paths import TOP
from tests.support.trees.trees import File, describe, read_tree, tree, write_tree

CONTENT = bytes(range(256)) * 200
WANTED = tree({"d/f": CONTENT + b"edited" + CONTENT, "new": b"new", "same": b"the same"})
HELD = tree({"d/f": File(CONTENT + CONTENT, 0o644, 1), "gone": b"gone", "same": b"the same"})


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


@pytest.fixture(scope="module")
def without_compiler(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip installs of it where the compiler fails."""
    target = tmp_path_factory.mktemp("pure")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run([*pip, f"--target={target}", str(sdist)], {"CC": "/bin/false"})
    return target


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, check=True).stdout
    return [os.fsdecode(name) for name in listed.split(b"\0") if name and (TOP / os.fsdecode(name)).exists()]


def run(words: list[str], environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **(environ or {})}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_it_holds_every_file_of_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert set(tracked()) - held == set()


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


def test_without_a_compiler_it_syncs_and_says_what_that_costs(without_compiler: Path, tmp_path: Path) -> None:
    assert not list(without_compiler.rglob("*.so"))
    source = write_tree(tmp_path / "s", WANTED)
    top = write_tree(tmp_path / "d", HELD)
    words = [sys.executable, "-m", "rdc", "sync", "--delete", "--no-catalog", f"{source}/", f"{top}/"]
    environ = {"PYTHONPATH": str(without_compiler), "PYTHONSAFEPATH": "1"}
    done = run(words, environ)
    assert describe(WANTED, read_tree(top)) == []
    lines = done.stderr.splitlines()
    assert [line for line in lines if "no C kernel" in line] == [lines[0]]
    assert str(without_compiler / "rdc") in lines[0]
    assert "no C kernel" not in run(words, {**environ, "RDC_KERNEL": "pure"}).stderr


@pytest.mark.parametrize("far_is_pure", [False, True])
def test_both_forms_speak_with_each_other_at_the_same_cost(
    far_is_pure: bool, without_compiler: Path, tmp_path: Path
) -> None:
    source = write_tree(tmp_path / "s", WANTED)
    sent: list[list[int]] = []
    for near, far in ((None, None), (without_compiler, None if not far_is_pure else without_compiler)):
        top = write_tree(tmp_path / f"d{len(sent)}", HELD)
        shell = tmp_path / f"shell{len(sent)}"
        path = "" if far is None else f"PYTHONPATH={far}"
        shell.write_text(f"#!/bin/sh\n{path} PYTHONSAFEPATH=1 exec {sys.executable} -m rdc serve --stdio\n")
        shell.chmod(0o755)
        environ = {"PYTHONSAFEPATH": "1", **({} if near is None else {"PYTHONPATH": str(near)})}
        words = ["sync", "--delete", "--stats", "--no-catalog", "-e", str(shell), f"{source}/", f"h:{top}/"]
        done = run([sys.executable, "-m", "rdc", *words], environ)
        assert describe(WANTED, read_tree(top)) == []
        sent.append([int(count) for count in re.findall(r"(?:sent|received) (\d+) B", done.stderr)[:2]])
    # The session's random key changes what compression saves by a few bytes.
    assert len(sent[0]) == 2
    assert all(abs(first - second) <= 8 for first, second in zip(*sent, strict=True)), sent


def test_a_demand_for_a_kernel_that_is_missing_is_refused(without_compiler: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    words = [sys.executable, "-m", "rdc", "signature", str(tmp_path / "file")]
    environ = {**os.environ, "PYTHONPATH": str(without_compiler), "PYTHONSAFEPATH": "1", "RDC_KERNEL": "c"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ExitCode.USAGE
    assert "reinstall rdc with a C compiler" in done.stderr
