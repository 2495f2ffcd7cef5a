"""Generates the man page rdc(1) from the texts of --help, for `rdc --man`."""

from __future__ import annotations

import re

from rdc.cli.options.settings import SETTINGS
from rdc.cli.options.table import options_help
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import OptionGroup
    from rdc.cli.verb import Verb

__all__ = ["manual"]

DATED = "2026-11-21"
"""The date of this version, at the foot of the page. A constant keeps the page reproducible."""

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
    """Returns the page in the markup of man(7)."""
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
    """Formats the blocks between empty lines. Indented blocks, usage and examples keep their line ends."""
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
    """Escapes a line of text, so that man reads no request at its start."""
    escaped = _escaped(text)
    return "\\&" + escaped if escaped[:1] in (".", "'") else escaped
