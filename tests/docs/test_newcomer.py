"""A newcomer's way: README.md alone, from a clone to the last of its jobs, with rdc installed as it says."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.manual.transcripts import blocks_of, differences
from tests.support.project_paths import TOP

pytestmark = pytest.mark.needs("git")

README = (TOP / "README.md").read_text()


def clone(place: Path) -> Path:
    """The files of this checkout, as a clone has them: nothing that was built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in listed.split("\0"):
        if name and (TOP / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, place / name)
    return place


def test_the_readme_is_enough(tmp_path: Path) -> None:
    command = next(
        line
        for block in blocks_of(README)
        for line in block.text.splitlines()
        if block.kind == "sh" and line.startswith("pipx install ")
    )
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", fresh], check=True)
    # As pipx does it: pip of an environment of its own.
    words = [str(fresh / "bin" / "python3"), "-m", "pip", *shlex.split(command)[1:], "--quiet"]
    installed = subprocess.run(
        words, cwd=clone(tmp_path / "clone"), capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    assert differences(README, fresh / "bin") == []
