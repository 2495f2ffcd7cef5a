"""The programs of docs/howto/python.md run, print what they promise, and have right types."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project_paths import TOP

PAGE = (TOP / "docs" / "howto" / "python.md").read_text()
PROGRAMS = dict(re.findall(r'```python title="(\w+\.py)"\n(.*?)```', PAGE, re.DOTALL))
NAMES = ["backup.py", "patch.py", "signature.py", "chunks.py", "texts.py", "duplicates.py"]


def run(directory: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / name).write_text(PROGRAMS[name])
    return subprocess.run(
        [sys.executable, name, *arguments],
        cwd=directory,
        env={"PYTHONPATH": str(TOP), "RDC_CATALOG": "off", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two versions of a file, and a directory with one file twice."""
    old = random.Random(1).randbytes(200_000)
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(old[:90_000] + b"an edit" + old[90_000:])
    (tmp_path / "photos").mkdir()
    for name in ("a", "b", "c.tmp"):
        (tmp_path / "photos" / name).write_text("the same")
    return tmp_path


def test_there_are_six() -> None:
    assert list(PROGRAMS) == NAMES


def test_mypy_accepts_them(tmp_path: Path) -> None:
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    # Not in the checkout: rdc is found as an installed package, whose own imports are not the concern.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", *NAMES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_backup(files: Path) -> None:
    done = run(files, "backup.py", "photos/", "copy/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 changed, 0 deleted")
    assert sorted(path.name for path in (files / "copy").iterdir() if path.name[0] != ".") == ["a", "b"]
    failed = run(files, "backup.py", "missing/", "copy/")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("name", ["patch.py", "signature.py"])
def test_deltas(files: Path, name: str) -> None:
    done = run(files, name, "old", "new", "result")
    assert done.returncode == 0, done.stderr
    assert (files / "result").read_bytes() == (files / "new").read_bytes()
    size = int(done.stdout.split(" bytes of delta")[0].split()[-1].replace(",", ""))
    assert size < (250 if name == "patch.py" else 9000)


def test_chunks(files: Path) -> None:
    done = run(files, "chunks.py", "store", "old", "new")
    assert done.returncode == 0, done.stderr
    new = int(done.stdout.split()[0].replace(",", ""))
    assert 200_000 < new < 260_000
    assert sum(path.stat().st_size for path in (files / "store").iterdir()) == new


def test_texts(files: Path) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    lines = [json.dumps({"text": one}) for one in (text, text + " more", "another text")]
    (files / "corpus").write_text("\n".join(lines))
    done = run(files, "texts.py", "corpus")
    assert done.stdout == f"{lines[0]}\n{lines[2]}\n"
    assert done.stderr == "1 of 3 texts left out\n"


def test_duplicates(files: Path) -> None:
    done = run(files, "duplicates.py", "photos")
    assert done.stdout == "16 bytes in copies of photos/a\n  photos/b\n  photos/c.tmp\n16 bytes in total\n"
