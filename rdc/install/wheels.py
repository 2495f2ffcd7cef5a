"""The wheels that go to another machine: given by the user, or made of what is installed here."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sysconfig
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from rdc.errors import ExitCode, RdcError, printable
from rdc.install.machine import Machine, Wheel
from rdc.install.wheel_choice import best_wheels

__all__ = ["chosen_wheels", "version_name"]

DISTRIBUTION = "rdc-sync"
"""The name of the package. Wheels write it with an underscore."""

_EXTENSION_SUFFIXES = (".so",)


def chosen_wheels(machine: Machine, given: str | None) -> tuple[Wheel, ...]:
    """The wheels for `machine`: those of the file or directory `given`, or made here. RdcError if none."""
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


def _needed(name: str) -> list[Distribution]:
    """The distribution and all that it depends on, as installed here. Each comes once."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        key = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
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
        for requirement in found[key].requires or ():
            if "extra ==" not in requirement and (match := re.match(r"[\w.-]+", requirement)):
                waiting.append(match.group())
    return [found[key] for key in sorted(found)]


def _rebuilt(source: Distribution) -> Wheel:
    """A wheel of the files of one installed distribution. Equal files make equal bytes."""
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
    """The files that belong into a wheel: of each its path there and here. Scripts and caches are none."""
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
