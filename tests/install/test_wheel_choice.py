"""Which wheels of a directory go to a machine."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from packaging.utils import parse_wheel_filename

from rdc.errors import RdcError
from rdc.install.wheels import Machine, Wheel, chosen_wheels, tags_of

DEBIAN = Machine("Linux", "x86_64", (3, 11), "glibc-2.36", "cpython-311-x86_64-linux-gnu", "/usr/bin/python3")
OLD = Machine("Linux", "x86_64", (3, 11), "glibc-2.17", "cpython-311-x86_64-linux-gnu", "/usr/bin/python3")
ALPINE = Machine("Linux", "x86_64", (3, 12), "-", "cpython-312-x86_64-linux-musl", "/usr/bin/python3")
PI = Machine("Linux", "aarch64", (3, 13), "glibc-2.41", "cpython-313-aarch64-linux-gnu", "/usr/bin/python3")
MACHINES = {"debian": DEBIAN, "old": OLD, "alpine": ALPINE, "pi": PI}


@pytest.mark.parametrize(
    ("tags", "on"),
    [
        ("py3-none-any", "debian old alpine pi"),
        ("py2.py3-none-any", "debian old alpine pi"),
        ("py2-none-any", ""),
        ("cp311-cp311-manylinux_2_28_x86_64", "debian"),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", "debian old"),
        ("cp311-cp311-manylinux2014_x86_64", "debian old"),
        ("cp311-cp311-manylinux1_x86_64", "debian old"),
        ("cp311-cp311-linux_x86_64", "debian old"),
        ("cp312-cp312-musllinux_1_2_x86_64", "alpine"),
        ("cp39-abi3-manylinux_2_34_x86_64", "debian"),
        ("cp37-abi3-musllinux_1_2_x86_64", "alpine"),
        ("cp313-abi3-manylinux_2_28_aarch64", "pi"),
        ("cp314-abi3-manylinux_2_28_aarch64", ""),
        ("cp313-cp313t-manylinux_2_28_aarch64", ""),
        ("cp311-cp311-win_amd64", ""),
        ("cp311-cp311-macosx_11_0_arm64", ""),
        ("cp311-cp311-manylinux_2_28_i686", ""),
    ],
)
def test_tags(tags: str, on: str) -> None:
    name, _, _, found = parse_wheel_filename(f"a_b-1.0-{tags}.whl")
    assert name == "a-b"
    assert [key for key, machine in MACHINES.items() if found & tags_of(machine).keys()] == on.split()


def write_wheel(place: Path, name: str, *requires: str) -> None:
    place.mkdir(exist_ok=True)
    package, version, *_ = name.split("-")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        lines = [f"Name: {package}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in requires)]
        archive.writestr(f"{package}-{version}.dist-info/METADATA", "\n".join(lines))
    (place / name).write_bytes(buffer.getvalue())


def names(wheels: tuple[Wheel, ...]) -> list[str]:
    return [wheel.name for wheel in wheels]


def test_one_of_each_package_that_is_needed_the_newest_that_fits(tmp_path: Path) -> None:
    place = tmp_path / "wheels"
    for python, platform in (("cp311", "manylinux_2_28_x86_64"), ("cp312", "musllinux_1_2_x86_64")):
        name = f"rdc_sync-0.1.0-{python}-{python}-{platform}.whl"
        write_wheel(place, name, "Rich>=13", "msgpack>=1", 'plotly>=6; extra == "report"')
    write_wheel(place, "rich-13.9.4-py3-none-any.whl", "pygments")
    write_wheel(place, "rich-13.10.0-py3-none-any.whl", "pygments")
    write_wheel(place, "pygments-2.1-py3-none-any.whl")
    write_wheel(place, "unrelated-1.0-py3-none-any.whl")
    write_wheel(place, "msgpack-1.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl")
    (place / "notes.txt").write_text("no wheel")
    assert names(chosen_wheels(DEBIAN, str(place))) == [
        "msgpack-1.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "pygments-2.1-py3-none-any.whl",
        "rdc_sync-0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "rich-13.10.0-py3-none-any.whl",
    ]
    with pytest.raises(
        RdcError, match=r"expected a wheel of msgpack for Python 3\.12, x86_64, musl; found only"
    ):
        chosen_wheels(ALPINE, str(place))
    with pytest.raises(
        RdcError, match=r"expected a wheel of rdc-sync for Python 3\.13, aarch64, glibc-2\.41"
    ):
        chosen_wheels(PI, str(place))


def test_what_is_no_wheel_is_named(tmp_path: Path) -> None:
    with pytest.raises(RdcError, match=r"expected a wheel of rdc-sync .*; found none at all"):
        chosen_wheels(DEBIAN, str(tmp_path))
    (tmp_path / "rdc_sync-0.1.0-py3-none-any.whl").write_bytes(b"no archive")
    with pytest.raises(RdcError, match=r"rdc_sync-0\.1\.0-py3-none-any\.whl: no wheel"):
        chosen_wheels(DEBIAN, str(tmp_path))
