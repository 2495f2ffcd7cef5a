"""The wheels that go to another machine: made of what is installed here, or chosen from those that the user
gives. The names of wheels say where they run (packaging.python.org, "Platform compatibility tags").
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sysconfig
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from rdc.errors import ExitCode, RdcError, printable
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.version import Version

DISTRIBUTION = "rdc-sync"
"""The name of the package. Wheels write it with an underscore."""

METADATA_BYTES = 1 << 20
"""Bytes of a wheel's METADATA. The largest that packages have are some 100 KB."""

_EXTENSION_SUFFIXES = (".so",)

_OLD_NAMES = {
    "manylinux_2_5": "manylinux1",
    "manylinux_2_12": "manylinux2010",
    "manylinux_2_17": "manylinux2014",
}
"""Names of manylinux before they had versions (PEP 600)."""

_MUSL_VERSIONS = 10
"""Minor versions of musl 1 that a wheel may name: the far machine does not say which it has."""


class Machine(Record):
    """The facts that decide which wheels run: the answer of the far Python."""

    system: str
    architecture: str
    python: tuple[int, int]
    libc: str
    """Such as glibc-2.36, or musl."""
    soabi: str
    """Such as cpython-311-x86_64-linux-gnu."""
    executable: str


class Wheel(Record):
    name: str
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def chosen_wheels(machine: Machine, given: str | None) -> tuple[Wheel, ...]:
    """Return the wheels for `machine`: those of the file or directory `given`, or made here. RdcError if
    none."""
    if given is not None:
        return best_wheels(_given_wheels(given), machine, DISTRIBUTION, given)
    own = sysconfig.get_config_var("SOABI")
    if machine.soabi != own:
        raise RdcError(
            f"the wheels of this machine ({own}) do not run there ({printable(machine.soabi)}):"
            " give wheels for it with --wheels=DIR",
            code=ExitCode.USAGE,
        )
    here, there = _glibc(_own_libc()), _glibc(machine.libc)
    if here is not None and there is not None and there < here:
        raise RdcError(
            f"the wheels of this machine need {_own_libc()}, and there is {printable(machine.libc)}:"
            " give wheels for it with --wheels=DIR",
            code=ExitCode.USAGE,
        )
    return tuple(_rebuilt(each) for each in _needed(DISTRIBUTION))


def version_name(version: str, wheels: tuple[Wheel, ...]) -> str:
    """VERSION-DIGEST: equal wheels have one name, and others have another."""
    digest = hashlib.sha256("".join(sorted(f"{each.name} {each.sha256}\n" for each in wheels)).encode())
    return f"{version}-{digest.hexdigest()[:16]}"


def _given_wheels(given: str) -> tuple[Wheel, ...]:
    try:
        names = sorted(os.listdir(given)) if os.path.isdir(given) else [""]
        paths = [os.path.join(given, name) if name else given for name in names]
        found = [path for path in paths if path.endswith(".whl")]
        wheels = []
        for path in found:
            with open(path, "rb") as file:
                wheels.append(Wheel(os.path.basename(path), file.read()))
    except OSError as error:
        raise RdcError(f"{printable(given)}: {error.strerror}", code=ExitCode.FILE_IO) from error
    return tuple(wheels)


def tags_of(machine: Machine) -> dict[Tag, int]:
    """Return the tags of the wheels that the machine's Python can load, each with its rank: 0 fits best."""
    major, minor = machine.python
    interpreter = f"cp{major}{minor}"
    # The library takes an empty list for this machine's own platforms.
    platforms = list(_platforms(machine)) or ["none"]
    tags = [
        *cpython_tags(machine.python, [interpreter], platforms),
        *compatible_tags(machine.python, interpreter, platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _platforms(machine: Machine) -> Iterator[str]:
    if machine.system != "Linux":
        return
    if machine.soabi.endswith("-musl"):
        names = [f"musllinux_1_{minor}" for minor in reversed(range(_MUSL_VERSIONS))]
    else:
        major, newest = _glibc(machine.libc) or (2, 0)
        names = [f"manylinux_{major}_{minor}" for minor in range(newest, -1, -1)]
    for name in names:
        yield f"{name}_{machine.architecture}"
        if name in _OLD_NAMES:
            yield f"{_OLD_NAMES[name]}_{machine.architecture}"
    yield f"linux_{machine.architecture}"


def best_wheels(wheels: Sequence[Wheel], machine: Machine, package: str, directory: str) -> tuple[Wheel, ...]:
    """Return the wheels of `package` and of all that it needs: of each the newest that runs there. RdcError
    names what `directory` lacks."""
    ranks = tags_of(machine)
    fitting: dict[str, list[tuple[Version, int, Wheel]]] = {}
    there: dict[str, str] = {}
    for wheel in wheels:
        try:
            name, version, _, tags = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename:
            continue
        there.setdefault(name, wheel.name)
        fits = [ranks[tag] for tag in tags if tag in ranks]
        if fits:
            fitting.setdefault(name, []).append((version, -min(fits), wheel))
    chosen: dict[str, Wheel] = {}
    waiting = [package]
    while waiting:
        needed = waiting.pop()
        if needed in chosen:
            continue
        if needed not in fitting:
            raise _lacking(needed, there.get(needed), machine, directory)
        *_, chosen[needed] = max(fitting[needed], key=lambda each: each[:2])
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


def _requirements(wheel: Wheel) -> Iterator[tuple[str, bool]]:
    """Yield the packages that a wheel requires without extras, each with whether a marker restricts it."""
    try:
        with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
            (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            with archive.open(path) as file:
                metadata, _ = parse_email(file.read(METADATA_BYTES))
        requirements = [Requirement(text) for text in metadata.get("requires_dist", ())]
    except (ValueError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise RdcError(f"{printable(wheel.name)}: no wheel: {error}", code=ExitCode.USAGE) from error
    for requirement in requirements:
        if "extra" not in str(requirement.marker):
            yield canonicalize_name(requirement.name), requirement.marker is not None


def _needed(name: str) -> list[Distribution]:
    """Return the distribution and all that it depends on, as installed here. Each comes once."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        key = canonicalize_name(waiting.pop())
        if key in found:
            continue
        try:
            found[key] = distribution(key)
        except PackageNotFoundError:
            if key == name:
                raise RdcError(
                    "rdc is not installed as a package here: give wheels with --wheels=DIR"
                ) from None
            # Its marker excludes it here, so it excludes it on an equal machine.
            continue
        requirements = map(Requirement, found[key].requires or ())
        waiting += [each.name for each in requirements if "extra" not in str(each.marker)]
    return [found[key] for key in sorted(found)]


def _rebuilt(source: Distribution) -> Wheel:
    """Return a wheel of the files of one installed distribution. Equal files make equal bytes."""
    name, tree = source.metadata["Name"], _files(source)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(tree):
            with open(tree[path], "rb") as file:
                archive.writestr(zipfile.ZipInfo(path), file.read(), zipfile.ZIP_DEFLATED)
    tag = f"cp{sysconfig.get_config_var('py_version_nodot')}"
    native = any(path.endswith(_EXTENSION_SUFFIXES) for path in tree)
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    tags = f"{tag}-{tag}-{platform}" if native else "py3-none-any"
    return Wheel(f"{re.sub(r'[-.]+', '_', name)}-{source.version}-{tags}.whl", buffer.getvalue())


def _files(source: Distribution) -> dict[str, str]:
    """Return the files that belong into a wheel: of each its path there and here. Scripts and caches are
    none."""
    listed = {
        str(path): str(source.locate_file(path))
        for path in source.files or ()
        if not path.is_absolute() and ".." not in path.parts and path.suffix not in (".pyc", ".pth")
    }
    if source.metadata["Name"] == DISTRIBUTION:
        # In an editable installation RECORD names no module.
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        for directory, names, files in os.walk(package):
            names[:] = [name for name in names if name != "__pycache__"]
            below = os.path.relpath(directory, os.path.dirname(package))
            listed |= {
                os.path.join(below, file): os.path.join(directory, file)
                for file in files
                if not file.endswith((".c", ".h", ".pyc"))
            }
    return {path: here for path, here in listed.items() if os.path.isfile(here)}


def _own_libc() -> str:
    import platform

    return "-".join(platform.libc_ver())


def _glibc(libc: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"glibc-(\d+)\.(\d+).*", libc)
    return (int(match[1]), int(match[2])) if match else None
