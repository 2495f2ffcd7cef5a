"""The process that a watch starts on this machine runs the same rdc, wherever it lies."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from rdc.version import __version__
from tests.support.project_paths import TOP

CODE = """
import subprocess, sys
sys.path[:0] = sys.argv[1:]
from rdc.session.far.far_host import ThisHost
*program, _, _ = ThisHost().argv
subprocess.run([*program, "--version"], check=True)
"""


def test_a_private_directory_is_found_again(tmp_path: Path) -> None:
    """The Python that runs knows nothing of this environment, as after `rdc install`."""
    (tmp_path / "json.py").write_text("raise AssertionError('a module of the working directory')\n")
    python = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [python, "-I", "-c", CODE, TOP, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"rdc {__version__} ")
