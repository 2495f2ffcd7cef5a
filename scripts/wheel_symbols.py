"""Checks that every undefined symbol of a C module is Python's or the target's C library's, by its linker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

__all__ = ["check_undefined", "python_symbols"]

_WHERE = (
    "import json,os,sys,sysconfig;v=sysconfig.get_config_var;"
    "print(json.dumps([os.path.realpath(sys.executable),os.path.join(v('LIBDIR'),v('INSTSONAME') or '')]))"
)


def python_symbols(python: str) -> frozenset[str]:
    """Return the symbols that the interpreter offers to its modules."""
    said = subprocess.run([python, "-c", _WHERE], check=True, capture_output=True, text=True).stdout
    found: set[str] = set()
    for place in map(Path, json.loads(said)):
        if place.suffix != ".a" and place.is_file():
            found |= _symbols(place, defined=True)
    if "PyModule_Create2" not in found:
        sys.exit(f"{python}: no symbols of Python found")
    return frozenset(found)


def check_undefined(
    name: str, module: Path, compiler: list[str], python: frozenset[str], scratch: Path
) -> None:
    """Links the module to a program that defines Python's symbols alone. compiler: of the target."""
    undefined = _symbols(module, defined=False)
    unknown = {symbol for symbol in undefined if symbol.startswith(("Py", "_Py"))} - python
    if unknown:
        sys.exit(f"{name}: this Python has no {sorted(unknown)}")
    stubs = scratch / "stubs.c"
    stubs.write_text(
        "".join(f"char {symbol}[8];\n" for symbol in sorted(undefined & python))
        + "int main(void) { return 0; }\n"
    )
    words = [*compiler, "-w", str(stubs), str(module), "-rdynamic", "-o", str(scratch / "linked")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: symbols that the target lacks:\n{done.stderr.strip()}")


def _symbols(place: Path, *, defined: bool) -> set[str]:
    with place.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynsym")
        if not isinstance(section, SymbolTableSection):
            return set()
        return {
            symbol.name
            for symbol in section.iter_symbols()
            if symbol.name
            and (symbol["st_shndx"] != "SHN_UNDEF") is defined
            and (defined or symbol["st_info"]["bind"] != "STB_WEAK")
        }
