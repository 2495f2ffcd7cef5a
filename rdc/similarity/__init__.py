"""Finds similar files, sets and texts: traits, min-wise samples, the resemblance that they suggest, shingles,
and an index of millions of files.

Public names load their module on first use. `rdc/similarity/__init__.pyi` lists them.
"""

from __future__ import annotations


def _modules() -> dict[str, str]:
    """Return the module of each public name: what the stub imports, one name a line."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="ascii") as stub:
        imports = [line.split() for line in stub if line.startswith("from ")]
    return {words[3]: words[1] for words in imports}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__all__":
        return [*_modules()]
    module = None if name.startswith("_") else _modules().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"{module}.{name}") if module == __name__ else getattr(import_module(module), name)
    globals()[name] = found
    return found
