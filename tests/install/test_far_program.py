"""The far program by itself: damaged wheels, hostile wheels, and an end in the middle."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rdc.install import far_program

PROGRAM = Path(far_program.__file__)

GOOD = "import sys\ndef main() -> None:\n    print('rdc', {version!r})\n"
BAD = "raise ImportError('it is for another machine')\n"


def wheel(main: str, **others: str) -> bytes:
    """A wheel with a package rdc whose `__main__` is given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rdc/__init__.py", "")
        archive.writestr("rdc/__main__.py", main)
        for name, text in others.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def order(data: bytes, name: str, digest: str = "") -> bytes:
    each = {"name": "rdc.whl", "size": len(data), "sha256": digest or hashlib.sha256(data).hexdigest()}
    return json.dumps({"action": "install", "name": name, "wheels": [each]}).encode() + b"\n" + data


def obey(home: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-I", str(PROGRAM)]
    return subprocess.run(words, input=stdin, capture_output=True, env={"HOME": str(home)})


def private(home: Path) -> Path:
    return home / ".local" / "share" / "rdc"


def answer(home: Path) -> str:
    return subprocess.run(
        [private(home) / "bin" / "rdc", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def name_of(version: int) -> str:
    return f"{version}.0-{version:016x}"


def put(home: Path, version: int) -> None:
    ended = obey(home, order(wheel(GOOD.format(version=version)), name_of(version)))
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert answer(home) == f"rdc {version}"


def test_the_version_before_stays_and_older_ones_go(tmp_path: Path) -> None:
    for version in (1, 2, 3):
        put(tmp_path, version)
    assert {path.name for path in private(tmp_path).iterdir()} == {"bin", name_of(2), name_of(3)}


def test_a_damaged_wheel_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    ended = obey(tmp_path, order(wheel(BAD), name_of(1), digest="0" * 64))
    assert ended.returncode == 1
    assert b"the SHA-256 differs" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_ends_early_leaves_the_old_version(tmp_path: Path) -> None:
    put(tmp_path, 1)
    ended = obey(tmp_path, order(wheel(BAD), name_of(2))[:-10])
    assert b"the connection ended early" in ended.stderr
    assert answer(tmp_path) == "rdc 1"


def test_a_version_that_does_not_start_leaves_the_old_one(tmp_path: Path) -> None:
    put(tmp_path, 1)
    ended = obey(tmp_path, order(wheel(BAD), name_of(2)))
    assert ended.returncode == 1
    assert b"does not start: ImportError: it is for another machine" in ended.stderr
    assert answer(tmp_path) == "rdc 1"
    assert {path.name for path in private(tmp_path).iterdir()} == {"bin", name_of(1)}


@pytest.mark.parametrize("call", ["fsync", "rename"])
@pytest.mark.parametrize("number", [1, 2, 3, 5, 8])
def test_killed_at_a_call_the_launcher_starts_old_or_new(tmp_path: Path, call: str, number: int) -> None:
    put(tmp_path, 1)
    killing = f"""
import os
calls = 0
real = os.{call}
def counted(*words):
    global calls
    calls += 1
    if calls == {number}:
        os.kill(os.getpid(), {int(signal.SIGKILL)})
    return real(*words)
os.{call} = counted
"""
    script = tmp_path / "program.py"
    script.write_text(killing + f"exec(compile(open({str(PROGRAM)!r}).read(), 'program', 'exec'))\n")
    subprocess.run(
        [sys.executable, "-I", script],
        input=order(wheel(GOOD.format(version=2)), name_of(2)),
        capture_output=True,
        env={"HOME": str(tmp_path)},
    )
    assert answer(tmp_path) in ("rdc 1", "rdc 2")
    put(tmp_path, 2)
    assert not [path for path in private(tmp_path).iterdir() if path.name.startswith(".new-")]


@pytest.mark.parametrize("name", ["../../out", "/out", "rdc/../../out", "a//b"])
def test_a_wheel_that_would_leave_its_directory_is_refused(tmp_path: Path, name: str) -> None:
    ended = obey(tmp_path, order(wheel(GOOD, **{name: "x"}), name_of(1)))
    assert b"would leave its directory" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["", ".local", ".local/share"])
def test_remove_removes_the_directories_that_install_made(tmp_path: Path, there: str) -> None:
    (tmp_path / there).mkdir(parents=True, exist_ok=True)
    for version in (1, 2):
        put(tmp_path, version)
    ended = obey(tmp_path, b'{"action": "remove"}\n')
    assert (ended.stdout, ended.stderr) == (b"removed\n", b"")
    before = [".local", ".local/share"][: len(Path(there).parts)]
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == before


def test_remove_leaves_a_directory_that_others_use_by_now(tmp_path: Path) -> None:
    put(tmp_path, 1)
    (tmp_path / ".local" / "bin" / "other").touch()
    assert obey(tmp_path, b'{"action": "remove"}\n').stdout == b"removed\n"
    assert [path.name for path in (tmp_path / ".local").iterdir()] == ["bin"]
    assert [path.name for path in (tmp_path / ".local" / "bin").iterdir()] == ["other"]


def test_the_answer_has_the_path_and_a_link_leads_to_it(tmp_path: Path) -> None:
    launcher, link = private(tmp_path) / "bin" / "rdc", tmp_path / ".local" / "bin" / "rdc"
    for version in (1, 2):  # the second installation finds its own link
        ended = obey(tmp_path, order(wheel(GOOD.format(version=version)), name_of(version)))
        assert ended.stdout.decode() == f"rdc {version}, {launcher}, linked from {link}\n"
        done = subprocess.run([link, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"rdc {version}\n"


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_a_file_that_is_no_link_of_its_own_stays(kind: str, tmp_path: Path) -> None:
    link = tmp_path / ".local" / "bin" / "rdc"
    link.parent.mkdir(parents=True)
    other = tmp_path / "other"
    if kind == "file":
        link.write_text("mine")
    else:
        link.symlink_to(other)
        if kind == "link":
            other.write_text("mine")
    ended = obey(tmp_path, order(wheel(GOOD.format(version=1)), name_of(1)))
    assert ended.returncode == 0 and f"not linked from {link}, which is another file" in ended.stdout.decode()
    assert obey(tmp_path, b'{"action": "remove"}\n').stdout == b"removed\n"
    assert link.is_symlink() == (kind != "file") and (kind == "dangling" or link.read_text() == "mine")


def test_remove_leaves_what_others_put_there(tmp_path: Path) -> None:
    put(tmp_path, 1)
    (private(tmp_path) / "mine").write_text("x")
    ended = obey(tmp_path, b'{"action": "remove"}\n')
    assert b"other files stay" in ended.stdout
    assert [path.name for path in private(tmp_path).iterdir()] == ["mine"]


def test_a_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    private(tmp_path).parent.mkdir(parents=True)
    os.symlink(tmp_path / "other", private(tmp_path))
    ended = obey(tmp_path, order(wheel(GOOD), name_of(1)))
    assert ended.returncode == 1
    assert list((tmp_path / "other").iterdir()) == []
