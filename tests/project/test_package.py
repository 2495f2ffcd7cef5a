"""The public names of rdc exist, work as a library, and are imported only when they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rdc
from rdc.errors import UsageError


def test_every_public_name_is_there() -> None:
    for name in rdc.__all__:
        assert getattr(rdc, name) is not None, name


def test_public_names_are_listed_before_they_are_used() -> None:
    assert set(rdc.__all__) <= set(dir(rdc))


def test_importing_rdc_imports_nothing_of_it() -> None:
    code = "import sys, rdc; print(sorted(m for m in sys.modules if m.startswith('rdc.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_library_signs_and_syncs(tmp_path: Path) -> None:
    params = rdc.ChunkParams.for_mean(1024)
    data = os.urandom(20_000)
    ends = rdc.cuts(data, params)
    assert ends[-1] == len(data)
    assert [chunk.length for chunk in rdc.chunks(data, params)] == [
        b - a for a, b in zip([0, *ends], ends, strict=False)
    ]
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_bytes(data)
    assert rdc.sign_file(source / "file", params).root == rdc.sign(data, params).root
    report = rdc.sync(f"{source}/", str(tmp_path / "copy"), catalog=None)
    assert isinstance(report, rdc.SyncReport)
    assert report.exit == 0
    assert (tmp_path / "copy" / "file").read_bytes() == data


def test_paths_are_paths_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = Path("host:source")
    source.mkdir()
    (source / "file").write_bytes(b"content")
    assert rdc.sync(source, Path("copy"), catalog=None).exit == 0
    assert Path("copy/host:source/file").read_bytes() == b"content"
    assert rdc.sync("./host:source/", tmp_path / "copy2", catalog=None).exit == 0
    assert (tmp_path / "copy2" / "file").read_bytes() == b"content"
    with pytest.raises(UsageError, match="NUL"):
        rdc.sync(Path("a\0b"), tmp_path, catalog=None)


def test_other_systems_are_refused_by_name() -> None:
    code = "import sys; sys.platform = 'win32'; import rdc.cli.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rdc: Windows is not supported; rdc runs on Linux (in WSL too)\n"
