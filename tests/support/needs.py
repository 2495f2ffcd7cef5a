"""The programs and rights that tests need beyond gcc and Python: `@pytest.mark.needs("rsync")` at a test says
so.

A plain run of pytest leaves out the tests whose needs are missing here, and says at its end what to install.
With --all-needs, as in scripts/test and in CI, nothing is left out, and a test that lacks something fails. A
test that starts a program of the table without its mark fails everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

__all__ = [
    "NEEDS",
    "Need",
    "check_needs",
    "checked_programs",
    "missing_needs",
    "needs_of",
    "optional_programs",
    "running",
    "told",
]

PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


@dataclass(frozen=True, slots=True)
class Need:
    programs: tuple[str, ...]
    """All of them must be there. A test may start them if it has the mark."""
    packages: str
    """The names of Debian's packages."""
    root: bool = False
    """Mounting takes root."""

    def lacks(self) -> str | None:
        """Return what is missing here and how to get it, None if nothing is."""
        if any(shutil.which(program, path=PATH) is None for program in self.programs):
            return f"apt-get install {self.packages}"
        return "run as root" if self.root and os.geteuid() else None


NEEDS = {
    "bash": Need(("bash",), "bash"),
    "btrfs": Need(("mkfs.btrfs", "mount", "umount"), "btrfs-progs mount", root=True),
    "chromium": Need(("chromium",), "chromium"),
    "exfat": Need(("mkfs.exfat", "mount.exfat-fuse", "umount"), "exfatprogs exfat-fuse mount", root=True),
    "ext4": Need(("mkfs.ext4", "mount", "umount"), "e2fsprogs mount", root=True),
    "filefrag": Need(("filefrag",), "e2fsprogs"),
    "fish": Need(("fish",), "fish"),
    "fuse": Need(("fusermount3", "umount"), "fuse3 mount", root=True),
    "git": Need(("git",), "git"),
    "mandoc": Need(("mandoc",), "mandoc"),
    "mount": Need(("mount", "umount"), "mount", root=True),
    "rsync": Need(("rsync",), "rsync"),
    "setpriv": Need(("setpriv",), "util-linux", root=True),
    "sshd": Need(("sshd", "ssh"), "openssh-server openssh-client"),
    "systemd": Need(("systemd-analyze",), "systemd"),
    "unshare": Need(("unshare",), "util-linux", root=True),
    "xfs": Need(("mkfs.xfs", "mount", "umount"), "xfsprogs mount", root=True),
    "zsh": Need(("zsh",), "zsh"),
}

OF_FIXTURES = {
    "btrfs_image": "btrfs",
    "ext4_image": "ext4",
    "exfat_image": "exfat",
    "seconds_image": "ext4",
    "xfs_image": "xfs",
}
"""Fixtures of tests/conftest.py that need something: who asks for one of them needs no mark."""

CHECKED = {
    program: {name for name, need in NEEDS.items() if program in need.programs}
    for program in {program for need in NEEDS.values() for program in need.programs}
    - {"bash", "git", "ssh", "umount"}
}
"""Programs that only marked tests may start. git and ssh are also started by tests that do without them, and
umount at the end of a fixture that an earlier test has made."""


def needs_of(item: pytest.Item) -> set[str]:
    """Return the needs of a test: those of its marks and of its fixtures."""
    found = {str(word) for mark in item.iter_markers("needs") for word in mark.args}
    unknown = found - NEEDS.keys()
    assert not unknown, f"{item.nodeid} needs {unknown}: known are {', '.join(NEEDS)}"
    fixtures = getattr(item, "fixturenames", ())
    found |= {need for fixture, need in OF_FIXTURES.items() if fixture in fixtures}
    chosen = getattr(getattr(item, "callspec", None), "params", {})
    return found | {str(chosen[name]) for name in ("linking", "sharing") if name in chosen}


def missing_needs() -> dict[str, str]:
    """Return the needs that this machine lacks, each with what to do."""
    return {name: advice for name, need in NEEDS.items() if (advice := need.lacks()) is not None}


def check_needs(item: pytest.Item) -> None:
    """Fail a test that lacks something. pytest leaves such tests out unless --all-needs asks for them."""
    missing = missing_needs()
    lacking = sorted(needs_of(item) & missing.keys())
    if lacking:
        pytest.fail("; ".join(f"this test needs {name}: {missing[name]}" for name in lacking), pytrace=False)


def told(lacking: Iterable[str], count: int) -> list[str]:
    """Return the lines about `count` tests that were left out, since they need `lacking`."""
    missing = missing_needs()
    return [
        f"{count} tests were left out. With --all-needs they fail. They need:",
        *(f"    {name}: {missing[name]}" for name in sorted(lacking) if name in missing),
    ]


_item: pytest.Item | None = None
_optional = False


@contextmanager
def running(item: pytest.Item) -> Iterator[None]:
    """Open a context in which this test runs: its marks say which programs may be started."""
    global _item  # noqa: PLW0603 - one test runs at a time
    _item = item
    try:
        yield
    finally:
        _item = None


@contextmanager
def optional_programs() -> Iterator[None]:
    """Open a context in which a test may try programs that it can do without."""
    global _optional  # noqa: PLW0603 - one test runs at a time
    before, _optional = _optional, True
    try:
        yield
    finally:
        _optional = before


@contextmanager
def checked_programs() -> Iterator[None]:
    """Open a context in which every process that a test starts is checked against the test's marks."""
    start = subprocess.Popen.__init__

    def checked(self: subprocess.Popen[Any], args: Any, *more: Any, **options: Any) -> None:
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
        program = os.path.basename(os.fsdecode(words[0]))
        allowed = CHECKED.get(program)
        if allowed and _item is not None and not _optional and not allowed & needs_of(_item):
            marks = " or ".join(f'@pytest.mark.needs("{name}")' for name in sorted(allowed))
            pytest.fail(f"{_item.nodeid} starts {program}: mark it {marks}", pytrace=False)
        start(self, args, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", checked)
        yield
