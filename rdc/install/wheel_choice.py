"""Chooses, of the wheels in a directory, those that run on a machine: one of each package, the newest.

The names of wheels say where they run (packaging.python.org, "Binary distribution format" and "Platform
compatibility tags").
"""

from __future__ import annotations

import io
import re
import zipfile

from rdc.errors import ExitCode, RdcError, printable
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.install.machine import Machine, Wheel

__all__ = ["WheelName", "best_wheels", "runs_on"]

_NAME = re.compile(r"([^-]+)-([^-]+)(?:-\d[^-]*)?-([^-]+)-([^-]+)-([^-]+)\.whl", re.ASCII)
_PLATFORM = re.compile(r"(manylinux|musllinux)_(\d{1,3})_(\d{1,3})_(\w+)", re.ASCII)
_OLD_NAMES = {
    "manylinux1": "manylinux_2_5",
    "manylinux2010": "manylinux_2_12",
    "manylinux2014": "manylinux_2_17",
}
"""Names of manylinux before they had versions (PEP 600)."""

METADATA_BYTES = 1 << 20
"""Bytes of a wheel's METADATA. The largest that packages have are some 100 KB."""


@dataclass(frozen=True, slots=True)
class WheelName:
    """The parts of a wheel's file name. Each tag may be several, joined by dots."""

    package: str
    """Normalised: lower case with hyphens."""
    version: str
    python: str
    abi: str
    platform: str

    @staticmethod
    def parse(name: str) -> WheelName | None:
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        package, version, python, abi, platform = match.groups()
        return WheelName(normalised(package), version, python, abi, platform)


def normalised(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def runs_on(name: WheelName, machine: Machine) -> bool:
    """Whether the machine's Python can load the wheel."""
    pythons, abis = name.python.split("."), name.abi.split(".")
    return _suits_python(pythons, abis, machine) and any(
        _suits_platform(platform, machine) for platform in name.platform.split(".")
    )


def _suits_python(pythons: Sequence[str], abis: Sequence[str], machine: Machine) -> bool:
    major, minor = machine.python
    own = f"cp{major}{minor}"
    if own in pythons and not {own, "abi3", "none"}.isdisjoint(abis):
        return True
    if "abi3" in abis:
        numbers = [
            python[3:] for python in pythons if python.startswith(f"cp{major}") and python[3:].isdigit()
        ]
        return any(int(number) <= minor for number in numbers)
    return "none" in abis and not {f"py{major}", f"py{major}{minor}"}.isdisjoint(pythons)


def _suits_platform(platform: str, machine: Machine) -> bool:
    if platform == "any":
        return True
    if machine.system != "Linux":
        return False
    if platform == f"linux_{machine.architecture}":
        return True
    for old, new in _OLD_NAMES.items():
        platform = re.sub(rf"^{old}_", f"{new}_", platform)
    match = _PLATFORM.fullmatch(platform)
    if match is None or match[4] != machine.architecture:
        return False
    if match[1] == "musllinux":
        return machine.soabi.endswith("-musl")
    there = re.fullmatch(r"glibc-(\d{1,3})\.(\d{1,3}).*", machine.libc)
    return there is not None and (int(match[2]), int(match[3])) <= (int(there[1]), int(there[2]))


def best_wheels(wheels: Sequence[Wheel], machine: Machine, package: str, directory: str) -> tuple[Wheel, ...]:
    """The wheels of `package` and of all that it needs. RdcError names what `directory` lacks."""
    fitting: dict[str, list[tuple[WheelName, Wheel]]] = {}
    there: dict[str, str] = {}
    for wheel in wheels:
        name = WheelName.parse(wheel.name)
        if name is not None:
            there.setdefault(name.package, wheel.name)
            if runs_on(name, machine):
                fitting.setdefault(name.package, []).append((name, wheel))
    chosen: dict[str, Wheel] = {}
    waiting = [package]
    while waiting:
        needed = waiting.pop()
        if needed in chosen:
            continue
        if needed not in fitting:
            raise _lacking(needed, there.get(needed), machine, directory)
        _, chosen[needed] = max(fitting[needed], key=lambda each: (_order(each[0].version), each[0].platform))
        # A marker such as "implementation_name != 'pypy'" may exclude a package, so it may be missing.
        for requirement, is_conditional in _requirements(chosen[needed]):
            if not is_conditional or requirement in fitting:
                waiting.append(requirement)
    return tuple(chosen[name] for name in sorted(chosen))


def _lacking(package: str, other: str | None, machine: Machine, directory: str) -> RdcError:
    major, minor = machine.python
    libc = "musl" if machine.soabi.endswith("-musl") else machine.libc
    found = "none at all" if other is None else f"only such as {printable(other)}"
    return RdcError(
        f"{printable(directory)}: expected a wheel of {package} for Python {major}.{minor},"
        f" {printable(machine.architecture)}, {printable(libc)}; found {found}",
        code=ExitCode.USAGE,
    )


def _order(version: str) -> tuple[int, ...]:
    """Sorts released versions. Others only have to come out in some fixed order."""
    return tuple(int(number[:9]) for number in re.findall(r"\d+", version))


def _requirements(wheel: Wheel) -> Iterator[tuple[str, bool]]:
    """The packages that a wheel requires without extras, each with whether a marker restricts it."""
    try:
        with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
            (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            with archive.open(path) as file:
                text = file.read(METADATA_BYTES).decode(errors="replace")
    except (ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise RdcError(f"{printable(wheel.name)}: no wheel: {error}", code=ExitCode.USAGE) from error
    for line in text.splitlines():
        requirement, _, marker = line.partition(";")
        name = re.match(r"Requires-Dist: *([\w.-]+)", requirement, re.ASCII)
        if name is not None and "extra" not in marker:
            yield normalised(name[1]), bool(marker)
