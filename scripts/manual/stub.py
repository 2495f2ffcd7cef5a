"""rdc/__init__.pyi: the public names, and the functions whose options are keywords with these spelled out.

    .venv/bin/python -m scripts.manual.stub     writes it again; scripts/docs --refresh does, too

The first part is written by hand: an import makes a name public. A name that is imported with an underscore
is a function that is declared below. This module writes these declarations: the keywords of
rdc.library.keywords, and the docstring without its example, both from the code.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable
from enum import Enum
from importlib import import_module

from rdc.library.keywords import Keyword, keywords_of
from scripts.manual.notes import TOP

STUB = TOP / "rdc" / "__init__.pyi"
MARK = "# Written by scripts/manual/stub.py from the code. Change nothing below.\n"


def written_stub(text: str) -> str:
    """Return the stub with its declarations made again."""
    head = text.partition(MARK)[0]
    lines = [line.split() for line in head.splitlines() if line.startswith("from rdc.")]
    own = [(words[1], words[3]) for words in lines if words[5] == f"_{words[3]}"]
    declared = "\n".join(_declaration(getattr(import_module(module), name)) for module, name in own)
    return f"{head}{MARK}\n{declared}"


def keyword_functions() -> dict[str, type]:
    """Return the functions that take options as keywords, each with its record of options."""
    import rdc

    found: dict[str, type] = {}
    for name in rdc.__all__:
        function = getattr(rdc, name)
        if inspect.isfunction(function) and "keywords" in function.__annotations__:
            found[name] = getattr(rdc, _record(function))
    return found


def _record(function: Callable[..., object]) -> str:
    return str(function.__annotations__["options"]).removesuffix(" | None")


def _declaration(function: Callable[..., object]) -> str:
    import rdc

    signature = inspect.signature(function)
    record: type = getattr(rdc, _record(function))
    lines = [f"def {function.__name__}("]
    starred = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            lines.append("    *,")
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        lines.append(f"    {parameter.name}: {parameter.annotation}{default},")
    for name, keyword in keywords_of(record).items():
        lines.append(f"    {name}: {keyword.annotation} = {_keyword_default(name, keyword)},")
    lines.append(f") -> {signature.return_annotation}:")
    described = str(inspect.getdoc(function)).partition("\n\n    >>>")[0].rstrip()
    doc = textwrap.indent(f'"""{described}\n"""', "    ", lambda line: line.strip() != "")
    return "\n".join([*lines, doc, ""])


def _keyword_default(name: str, keyword: Keyword) -> str:
    return _default(keyword.default) if name == keyword.field else "..."


def _default(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Enum):
        return json.dumps(value)  # in double quotes, as the formatter has it
    plain = value is None or (isinstance(value, (bool, int, float)) and not isinstance(value, Enum))
    return repr(value) if plain else "()" if value == () else "..."


def write_stub() -> None:
    STUB.write_text(written_stub(STUB.read_text()))


if __name__ == "__main__":
    write_stub()
    print("written", STUB.relative_to(TOP))
