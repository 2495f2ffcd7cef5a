"""The man page, rdc(1), from what --help is made of; `rdc --man` prints it."""

from __future__ import annotations

import re

from rdc import __version__
from rdc.cli.options import options_help
from rdc.cli.settings import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.main import Verb
    from rdc.cli.options import OptionGroup

__all__ = ["manual"]

DATED = "2026-11-21"
"""The day of this version, which man shows at the foot of the page: a page has one, and building knows no
clock."""

_ENVIRONMENT = {
    "NO_COLOR": "if set and not empty, nothing is coloured",
    "RDC_DEBUG": "if set, errors come with tracebacks",
    "RDC_KERNEL": "demands one form of the kernel: avx512, avx2, ssse3, neon, c or pure",
    **{setting.variable: f"the setting {setting.key}: {setting.help}" for setting in SETTINGS},
}

_FILES = {
    "~/.config/rdc/config.toml": "settings for all runs; see rdc config",
    "~/.config/rdc/keys/": "this machine's key, and those it trusts; see rdc keys",
    "~/.cache/rdc/": "the catalog; see rdc catalog",
}


def manual(verbs: dict[str, Verb]) -> str:
    """The page in man(7)'s language."""
    lines = [
        f'.TH RDC 1 {DATED} "rdc {_escaped(__version__)}"',
        ".SH NAME",
        r"rdc \- sync directories, sending only what differs",
        ".SH SYNOPSIS",
    ]
    for name in verbs:
        lines += [".B rdc " + name, ".RI [ OPTIONS ]", ".I ...", ".br"]
    lines = lines[:-1]
    for name, verb in verbs.items():
        introduction, closing = verb.help_text().split(options_help(verb.OPTIONS))
        lines += [f'.SH "RDC {name.upper()}"', _sentence(verb.SUMMARY)]
        lines += [*_paragraphs(introduction), *_options(verb.OPTIONS), *_paragraphs(closing)]
    lines += [".SH ENVIRONMENT", *_terms(_ENVIRONMENT), ".SH FILES", *_terms(_FILES)]
    lines += [".SH SEE ALSO", ".BR rsync (1),", ".BR ssh (1)"]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return _line(text[0].upper() + text[1:] + ".")


def _paragraphs(text: str) -> list[str]:
    """Blocks between empty lines; what is indented, or follows `Usage:` or `Examples:`, keeps its lines."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if not block.strip():
            continue
        rows = block.split("\n")
        lines.append(".PP")
        if rows[0].startswith("Usage:"):
            rows = ["  " + row[len("Usage:") :].strip() for row in rows]
        elif rows[0].endswith(":") and len(rows) > 1:
            lines.append(_line(rows.pop(0)))
        if all(row.startswith(" ") for row in rows):
            lines += [".RS", ".nf", *(_line(row[2:]) for row in rows), ".fi", ".RE"]
        else:
            lines += [_line(row.strip()) for row in rows]
    return lines


def _options(groups: tuple[OptionGroup, ...]) -> list[str]:
    lines: list[str] = []
    for group in groups:
        lines.append(f'.SS "{_escaped(group.title)}"')
        for option in group.options:
            names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in option.names)
            if option.metavar is not None:
                names += (
                    "=" if option.names[-1].startswith("--") else " "
                ) + rf"\fI{_escaped(option.metavar)}\fR"
            lines += [".TP", names, _line(option.help)]
    return lines


def _terms(table: dict[str, str]) -> list[str]:
    return [line for term, text in table.items() for line in (".TP", rf"\fB{_escaped(term)}\fR", _line(text))]


def _escaped(text: str) -> str:
    return (
        text.replace("\\", "\\e")
        .replace("-", "\\-")
        .replace('"', "\\(dq")
        .replace("~", "\\(ti")
        .replace("^", "\\(ha")
    )


def _line(text: str) -> str:
    """Text that begins no request."""
    escaped = _escaped(text)
    return "\\&" + escaped if escaped[:1] in (".", "'") else escaped
