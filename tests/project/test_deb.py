"""The Debian package holds what pyproject.toml asks for, and installs all of data/."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rdc.version import __version__
from tests.support.project_paths import TOP

DEBIAN = TOP / "debian"
COPYRIGHT = DEBIAN / "wheel_copyright.py"


def pins(name: str) -> dict[str, str]:
    """The versions of a list of wheels, by name."""
    text = (DEBIAN / name).read_text()
    return {canonicalize_name(each[1]): each[2] for each in re.finditer(r"(?m)^([\w.-]+)==(\S+)", text)}


def closure(requirements: list[str]) -> set[str]:
    """The names of these and of all that they need, here and without extras."""
    names: set[str] = set()
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        if name in names or (
            requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        try:
            names |= {name} | closure(requires(name) or [])
        except PackageNotFoundError as error:
            raise AssertionError(f"{name} is needed and not installed here") from error
    return names


def project() -> dict[str, list[str]]:
    table: dict[str, list[str]] = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    return table


def test_the_wheels_are_the_dependencies_and_theirs() -> None:
    assert pins("wheels.txt").keys() == closure(project()["dependencies"])


def test_their_versions_are_those_that_rdc_asks_for() -> None:
    table = tomllib.loads((TOP / "pyproject.toml").read_text())
    for wanted, pinned in (
        (table["project"]["dependencies"], pins("wheels.txt")),
        (table["build-system"]["requires"], pins("build-wheels.txt")),
    ):
        for requirement in map(Requirement, wanted):
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_all_wheels_are_pinned_by_digest() -> None:
    for name in ("wheels.txt", "build-wheels.txt"):
        for entry in re.split(r"(?m)^(?=[\w.-]+==)", (DEBIAN / name).read_text())[1:]:
            assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    assert (DEBIAN / "changelog").read_text().startswith(f"rdc-sync ({__version__})")


def test_all_data_files_are_installed() -> None:
    patterns = [
        line.split()[0]
        for name in ("rdc-sync.install", "rdc-sync.manpages")
        for line in (DEBIAN / name).read_text().splitlines()
    ]
    for path in (TOP / "data").rglob("*"):
        name = path.relative_to(TOP).as_posix()
        assert path.is_dir() or any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name


def made_wheel(path: Path, licences: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("some-1.dist-info/METADATA", "Name: Some\nVersion: 1\nAuthor: A. N. Author\n\ntext\n")
        for name, text in licences.items():
            wheel.writestr(f"some-1.dist-info/licenses/{name}", text)
    return path


def paragraphs(wheel: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, COPYRIGHT, wheel], capture_output=True, text=True)


def test_the_copyright_file_quotes_the_licence_of_each_wheel(tmp_path: Path) -> None:
    wheel = made_wheel(
        tmp_path / "some-1-py3-none-any.whl",
        {
            "LICENSE": "Copyright (c) 2020, A. N. Author\n\nAll is allowed.\n",
            "LICENSE.APACHE": "Apache License\n  Version 2.0, January 2004\n" + "long text\n" * 200,
        },
    )
    done = paragraphs(wheel)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "Files: debian/wheels/some-*\nCopyright: 2020, A. N. Author\nLicense: some-license\n" in done.stdout
    )
    assert (
        "\nLicense: some-license\n LICENSE:\n .\n Copyright (c) 2020, A. N. Author\n .\n All is"
        in done.stdout
    )
    assert "/usr/share/common-licenses/Apache-2.0" in done.stdout and "long text" not in done.stdout


def test_a_wheel_without_a_licence_is_refused(tmp_path: Path) -> None:
    done = paragraphs(made_wheel(tmp_path / "some-1-py3-none-any.whl", {}))
    assert done.returncode == 1 and "holds no licence" in done.stderr
