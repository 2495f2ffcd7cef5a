"""The rdc of each version of the protocol that is still spoken, from fixtures/versions, ready to run."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.support.kernel.sanitized import build_module
from tests.support.project_paths import TOP

__all__ = ["KEPT", "unpack_version"]

KEPT = TOP / "fixtures" / "versions"


def unpack_version(version: int, place: Path) -> str:
    """Put the rdc of a version of the protocol into `place`. Return the kernel that it runs with.

    Those of before C was required are kept without their C parts, and run in plain Python, slowly and whole.
    """
    with tarfile.open(KEPT / f"rdc-{version}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    if not (place / "rdc/kernel/module.c").exists():
        return "pure"
    for package in ("kernel", "files"):
        build_module(place / "rdc" / package, ("-O2", "-w"))
    return ""
