"""Builds and checks wheels for several processors, C libraries and Pythons. scripts/wheels starts it.

The zig compiler brings the headers and libraries of every target, so that one machine builds for all. The
headers of Python come from the interpreter that builds: they are the same on all 64-bit Linux targets.

A wheel serves one version of Python. All C modules compile for the stable ABI of 3.11 once PyBytes_AS_STRING
and its like become calls, and a copy replaces _PyBytes_Resize. Nanoseconds a call, the 5th percentile of 400
runs in turns, CPython 3.11.7, gcc 12.2, an x86_64 server with AVX-512:

                                            this ABI   stable ABI
    name 64 inputs of 40 bytes                 2,351        2,517   +7.1 %
    name 64 inputs of 2 KiB                   22,040       22,191   +0.7 %
    fingerprint 32 blocks of 32 bytes          1,024        1,076   +5.0 %
    plan the reads of 100,000 ranges         134,808      184,769    +37 %
    cut a stream of 64 bytes                     570          574   +0.7 %
    cut 128 KiB                              134,648      134,905   +0.2 %
    read a directory of 100 entries          121,909      121,408   -0.4 %

Some calls cost more than 2 %, so it stays one wheel a version.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import ziglang
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from scripts.wheel_symbols import check_undefined, python_symbols
from scripts.wheel_vectors import check_vectors

TOP = Path(__file__).resolve().parent.parent
GLIBC = (2, 28)
MUSL = (1, 2)


@dataclass(frozen=True)
class Target:
    """A processor and a C library."""

    architecture: str
    libc: str

    @property
    def name(self) -> str:
        return f"{self.architecture}-{self.libc}"

    @property
    def zig(self) -> str:
        version = f".{GLIBC[0]}.{GLIBC[1]}" if self.libc == "gnu" else ""
        return f"{self.architecture}-linux-{self.libc}{version}"

    @property
    def compiler(self) -> list[str]:
        """The command that compiles and links for it."""
        return [str(Path(ziglang.__file__).with_name("zig")), "cc", "-target", self.zig]

    @property
    def platform_tag(self) -> str:
        kind, version = ("manylinux", GLIBC) if self.libc == "gnu" else ("musllinux", MUSL)
        return f"{kind}_{version[0]}_{version[1]}_{self.architecture}"

    def suffix(self, version: str) -> str:
        """Return the end of the file name of a C module."""
        return f".cpython-{version}-{self.architecture}-linux-{self.libc}.so"

    @property
    def runs_here(self) -> bool:
        return self.architecture == platform.machine() and self.libc == "gnu"


TARGETS = [Target(architecture, libc) for architecture in ("x86_64", "aarch64") for libc in ("gnu", "musl")]

# Libraries that every Linux of the target's kind has.
SYSTEM_LIBRARIES = {
    "libc.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "libm.so.6",
    "libc.so",
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", nargs="?", default="dist", type=Path)
    parser.add_argument("--python", action="append", help="an interpreter to build for (default: this one)")
    parser.add_argument("--target", action="append", choices=[target.name for target in TARGETS])
    given = parser.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    unrun = []

    def asked(target: Target) -> bool:
        return given.target is None or target.name in given.target

    with tempfile.TemporaryDirectory(prefix="rdc-wheels-") as scratch:
        for architecture in sorted({target.architecture for target in TARGETS if asked(target)}):
            static = Target(architecture, "musl").compiler
            print(
                check_vectors(static, architecture, Path(scratch)) or f"not run here: vectors, {architecture}"
            )
        for python in given.python or [sys.executable]:
            for target in TARGETS:
                if asked(target):
                    wheel = build(python, target, given.directory, Path(scratch))
                    check(wheel, target)
                    check_symbols_of(wheel, target, python_symbols(python), Path(scratch))
                    audit(wheel, target)
                    if target.runs_here:
                        run(python, wheel, Path(scratch))
                        print(f"{wheel.name}: built, checked, run", flush=True)
                    else:
                        unrun.append(wheel.name)
                        print(f"{wheel.name}: built, checked", flush=True)
    for name in unrun:
        print(f"not run here: {name}")


def build(python: str, target: Target, directory: Path, scratch: Path) -> Path:
    """Build one wheel from a copy of the sources."""
    version = output([python, "-c", "import sys; print('%d%d' % sys.version_info[:2])"])
    copy = scratch / "source"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns(
        "__pycache__", "*.so", ".venv", ".git", "build", "dist", "*.egg-info", ".*_cache"
    )
    shutil.copytree(TOP, copy, ignore=ignored, symlinks=True)
    # pip builds in an environment of its own, which does not have the module.
    compiler = " ".join(target.compiler)
    environment = {
        **os.environ,
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared",
        "CFLAGS": "-O3 -DNDEBUG -fPIC -g0",
        "LDFLAGS": "-s",
        "SETUPTOOLS_EXT_SUFFIX": target.suffix(version),
        "_PYTHON_HOST_PLATFORM": f"linux-{target.architecture}",
        "SOURCE_DATE_EPOCH": "1577836800",
    }
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    option = f"--config-settings=--build-option=--plat-name={target.platform_tag}"
    words = [python, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", option]
    subprocess.run([*words, f"--wheel-dir={out}", str(copy)], env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return Path(shutil.copy2(wheel, directory / wheel.name))


def check(wheel: Path, target: Target) -> None:
    """Check that all C modules are there, for this processor, and need nothing that the target may lack."""
    expected = {"rdc/kernel/_kernel", "rdc/files/_files"}
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
        found = {name.partition(".cpython-")[0] for name in modules}
        if found != expected:
            sys.exit(f"{wheel.name}: expected the C modules {sorted(expected)}, found {sorted(found)}")
        for name in modules:
            with archive.open(name) as file:
                check_module(f"{wheel.name}: {name}", ELFFile(file), target)


def check_symbols_of(wheel: Path, target: Target, python: frozenset[str], scratch: Path) -> None:
    """Let the target's linker find every undefined symbol of the C modules."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                module = Path(archive.extract(name, scratch / "modules"))
                check_undefined(f"{wheel.name}: {name}", module, target.compiler, python, scratch)


def check_module(name: str, elf: ELFFile, target: Target) -> None:
    machine = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}[target.architecture]
    if elf["e_machine"] != machine:
        sys.exit(f"{name}: expected {machine}, found {elf['e_machine']}")
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed = {tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
            if needed - SYSTEM_LIBRARIES:
                sys.exit(f"{name}: needs {sorted(needed - SYSTEM_LIBRARIES)}, which not every system has")
        elif isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                for version in versions:
                    label, _, number = version.name.partition("_")
                    if label == "GLIBC" and tuple(map(int, number.split("."))) > GLIBC:
                        sys.exit(f"{name}: needs {version.name}, newer than glibc {GLIBC[0]}.{GLIBC[1]}")
        elif isinstance(section, SymbolTableSection) and section.name == ".dynsym":
            check_symbols(name, section)


def check_symbols(name: str, section: SymbolTableSection) -> None:
    """Fail for checked forms of the C library's functions, whose names begin with __: the compiler inserts
    them, and not every C library has them."""
    undefined = {
        symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name
    }
    odd = {symbol for symbol in undefined if symbol.startswith("__") and "_chk" in symbol}
    if odd:
        sys.exit(f"{name}: {sorted(odd)} are not in every C library")


def audit(wheel: Path, target: Target) -> None:
    """auditwheel reads the symbols as well, and has to come to the same tag."""
    said = output([sys.executable, "-m", "auditwheel", "show", str(wheel)])
    if target.platform_tag not in " ".join(said.split()):
        sys.exit(f"{wheel.name}: auditwheel does not find it fit for {target.platform_tag}:\n{said}")


def run(python: str, wheel: Path, scratch: Path) -> None:
    """Install the wheel into an empty environment of this interpreter, and run its command."""
    place = scratch / "environment"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    command = str(place / "bin" / "rdc")
    said, expected = output([command, "--version"]), output([sys.executable, "-m", "rdc", "--version"])
    if said != expected:
        sys.exit(
            f"{wheel.name}: expected {expected!r}, as the compiler of this system makes it, found {said!r}"
        )
    (scratch / "tree").mkdir(exist_ok=True)
    (scratch / "tree" / "file").write_bytes(bytes(range(256)) * 1000)
    for _ in range(2):
        output([command, "sync", "--no-catalog", f"{scratch}/tree/", f"{place}/copy/"])
    if (place / "copy" / "file").read_bytes() != (scratch / "tree" / "file").read_bytes():
        sys.exit(f"{wheel.name}: a sync made another file")


def output(words: list[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
