"""rdc: file sync and deduplication by content-defined chunking.

    >>> import rdc
    >>> report = rdc.sync("src/", "backup/")
    >>> tree = rdc.sign_file("disk.img")

A public name loads its module on first use, so `import rdc` is cheap. `rdc/__init__.pyi` lists the names.
"""

from __future__ import annotations

_MODULES: dict[str, str] = {}
"""The module of each public name, once one was asked for."""


def _modules() -> dict[str, str]:
    """Return the module of each public name: what the stub imports, one name a line."""
    if not _MODULES:
        with open(f"{__path__[0]}/__init__.pyi", encoding="ascii") as stub:
            for line in stub:
                words = line.split()
                if words[:1] == ["__all__:"]:
                    break  # declarations of these names follow
                if len(words) > 3 and words[1].startswith("rdc."):
                    _MODULES[words[3]] = words[1]
    return _MODULES


def __getattr__(name: str) -> object:
    if name == "__all__":
        return [*_modules()]
    # Python asks a module for many names with underscores. None of them needs the stub.
    module = _modules().get(name) if name == "__version__" or not name.startswith("_") else None
    if module is None:
        raise AttributeError(f"module 'rdc' has no attribute {name!r}")
    import enum  # noqa: F401 - a program gets enumerations of this module: see rdc/lean/enums.py
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """List all public names, used or not, for completion in an interactive shell."""
    return sorted({*globals(), *_modules(), "__all__"})
