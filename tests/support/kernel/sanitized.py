"""Builds the C modules of rdc with sanitizers into a copy of the project, and runs Python on that copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.project_paths import NATIVE, TOP

__all__ = ["FAULTS", "FOUND", "Sanitized", "build_module"]


FOUND = 99
"""The exit code of a process in which a sanitizer found something."""

FAULTS = ("-include", str(NATIVE / "random_faults.h"))
"""Compiler words: calls of rdc/files fail as the environment of the process says."""

_FLAGS = (
    *("-O0", "-g1", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def build_module(folder: Path, flags: Sequence[str]) -> None:
    """Build the C module of a package in its folder, as setup.py does, with these flags of the compiler."""
    target = folder / f"_{folder.name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = [f"-I{each}" for each in (sysconfig.get_path("include"), folder)]
    sources = sorted(str(path) for path in folder.rglob("*.c"))
    compiler = [os.environ.get("CC", "cc"), "-std=c11", "-fPIC", "-shared", "-pthread"]
    subprocess.run([*compiler, *flags, *include, *sources, "-o", str(target)], check=True)


class Sanitized:
    """A copy of the project in `place`, with the C modules of these packages (such as rdc.files) built anew.

    `changes`: texts of C sources to be replaced in the copy, so that a test can plant a fault.
    """

    def __init__(
        self,
        place: Path,
        names: Sequence[str],
        flags: Sequence[str] = (),
        changes: Mapping[str, str] | None = None,
    ) -> None:
        self.place = place
        ignored = shutil.ignore_patterns(
            "__pycache__", *[f"_{name.rpartition('.')[2]}.*.so" for name in names]
        )
        for folder in ("rdc", "tests", "fixtures", "scripts"):
            shutil.copytree(TOP / folder, place / folder, ignore=ignored)
        for name in ("pyproject.toml", "setup.py", "README.md"):
            shutil.copy(TOP / name, place / name)
        for old, new in (changes or {}).items():
            self._replace(old, new)
        for name in names:
            build_module(self.place / name.replace(".", "/"), (*_FLAGS, *flags))

    def _replace(self, old: str, new: str) -> None:
        (path,) = (path for path in self.place.glob("rdc/**/*.c") if old in path.read_text())
        path.write_text(path.read_text().replace(old, new))

    def start(self, *words: str, faults: int = 0, seed: int = 0) -> subprocess.Popen[str]:
        """`python words...` in the copy. `faults`: one call of so many fails, where it was built for that."""
        runtime = subprocess.run(
            [os.environ.get("CC", "cc"), "-print-file-name=libasan.so"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        environ = os.environ | {
            "LD_PRELOAD": runtime,
            # Python keeps what it ends with; what the modules lose is counted by descriptors and by memory.
            "ASAN_OPTIONS": f"detect_leaks=0:exitcode={FOUND}:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": f"exitcode={FOUND}:halt_on_error=1:print_stacktrace=1",
            # Otherwise small objects share blocks, in which a sanitizer sees no end.
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(self.place),
            "RDC_FAULTS": str(faults),
            "RDC_FAULTS_SEED": str(seed),
        }
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.place,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *words: str, faults: int = 0, seed: int = 0) -> tuple[int, str]:
        """Run as start() does; return the exit code and what was printed."""
        process = self.start(*words, faults=faults, seed=seed)
        out, _ = process.communicate()
        return process.returncode, out
