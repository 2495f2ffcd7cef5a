"""Generates man pages from the texts of --help: rdc(1) for `rdc --man`, rdc-sync(1) for `rdc sync --man`."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

from rdc.cli.environment import SETTINGS, OptionGroup
from rdc.errors import ExitCode
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rdc.cli.verb import Verb
    from rdc.model.options import Option


DATED = "2026-11-21"
"""The date of this version, at the foot of the page. A constant keeps the page reproducible."""

_ENVIRONMENT = {
    "NO_COLOR": "if set and not empty, nothing is coloured",
    "RDC_DEBUG": "if set, errors come with tracebacks",
    "RDC_KERNEL": "demands one form of the kernel: avx512, avx2, neon or c",
    **{setting.variable: f"the setting {setting.key}: {setting.help}" for setting in SETTINGS},
}

_FILES = {
    "~/.config/rdc/config.toml": "settings for all runs; see rdc config",
    "~/.config/rdc/keys/": "this machine's key, and those it trusts; see rdc keys",
    "~/.cache/rdc/": "the catalog; see rdc catalog",
}


_PATTERNS = {
    "*.o": "* is any text without /",
    "a**z": "** is any text",
    "file?.txt": "? is one character, not /",
    "[a-f]*": "a character of a set",
    "/build": "a leading /: only at the top of what is synced",
    "cache/": "a trailing /: directories only",
    "src/main.c": "without a leading /: the end of a path",
    "dir/***": "the directory with all in it",
}

_COMMON = ("start", "progress", "error", "summary")
_WATCHED = ("halted", "resumed", "limited", "disconnected")
VERB_EVENTS: dict[str, tuple[str, ...]] = {
    "sync": ("start", "plan", "item", "progress", "error", "summary"),
    "check": (*_COMMON, "difference"),
    "watch": (
        *("start", "plan", "item", "progress", "error"),
        *("in_step", *_WATCHED, "stopped"),
    ),
    "dupes": (*_COMMON, "directories", "group"),
    "similar": (*_COMMON, "group", "match", "folders"),
    "dedupe": (*_COMMON, "item"),
    "undo": (*_COMMON, "item", "undoable"),
    "store": ("start", "snapshot", "error", "progress", "summary"),
    "unite": (*_COMMON, "plan", "item", "conflict", "pair", "united", *_WATCHED),
}
"""The events of --json, of each verb that has any."""


def verb_manual(name: str, verb: Verb) -> str:
    """Return the page of one verb in the markup of man(7), with filters, exit codes and events."""
    help_text = verb.help_text
    lines = [
        f'.TH RDC\\-{name.upper()} 1 {DATED} "rdc {_escaped(__version__)}"',
        ".SH NAME",
        rf"rdc\-{name} \- {_escaped(verb.SUMMARY)}",
        ".SH DESCRIPTION",
        *_paragraphs(help_text.introduction),
        ".SH OPTIONS",
        *_options(verb.OPTIONS),
        *_paragraphs(help_text.closing),
    ]
    if any(option.key == "--exclude" for group in verb.OPTIONS for option in group.options):
        lines += [
            ".SH FILTERS",
            "All options that choose files make one list, in the order given.",
            "The first rule that matches an entry decides; an entry without a match takes part.",
            "Nothing below an excluded directory is looked at.",
            *_terms(_PATTERNS),
        ]
    if name == "serve":
        lines += [".SH SETTINGS", *_terms(_daemon_settings())]
    codes = _notes("exit_codes")
    lines += [".SH EXIT STATUS", *_terms({str(int(code)): _plain(codes[code.name]) for code in ExitCode})]
    if name in VERB_EVENTS:
        lines += [".SH JSON EVENTS", *_events(name)]
    lines += [".SH ENVIRONMENT", *_terms(_ENVIRONMENT), ".SH FILES", *_terms(_FILES)]
    lines += [".SH SEE ALSO", ".BR rdc (1)"]
    return "\n".join(lines) + "\n"


def _events(verb: str) -> list[str]:
    """Return the events of a verb and their fields, then the fields that several events have."""
    table = _notes("events")
    lines = ["With \\-\\-json, each line of the output is one object: v is 1, and event names it."]
    for event in VERB_EVENTS[verb]:
        texts = {**table.get(event, {}), **table.get(f"{verb}-{event}", {})}
        lines += [f".SS {_escaped(event)}", _line(_plain(texts.pop("event", "")))]
        lines += _terms({name: _plain(text) for name, text in texts.items()})
    return [
        *lines,
        '.SS "Fields of several events"',
        *_terms({k: _plain(v) for k, v in table["fields"].items()}),
    ]


def _daemon_settings() -> dict[str, str]:
    """Return the settings and limits of a daemon with their defaults, from the tables of DAEMON.md."""
    document = resources.files("rdc.daemon").joinpath("DAEMON.md").read_text("utf-8")
    section = document.partition("\n## Settings\n")[2].partition("\n## ")[0]
    rows = (map(str.strip, row.strip("|").split("|")) for row in re.findall(r"(?m)^\| `.*$", section))
    return {
        _plain(name): _plain(
            text + (f" ({'required' if default == 'needed' else f'default: {default}'})" * bool(default))
        )
        for name, default, text in rows
    }


def _notes(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("rdc.cli").joinpath(f"notes/{name}.toml").read_text("utf-8"))


def _plain(text: str) -> str:
    return text.replace("`", "")


def manual(verbs: dict[str, Verb]) -> str:
    """Return the page in the markup of man(7)."""
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
        help_text = verb.help_text
        lines += [f'.SH "RDC {name.upper()}"', _sentence(verb.SUMMARY)]
        lines += _paragraphs(help_text.introduction)
        lines += [*_options(verb.OPTIONS), *_paragraphs(help_text.closing)]
    lines += [".SH ENVIRONMENT", *_terms(_ENVIRONMENT), ".SH FILES", *_terms(_FILES)]
    lines += [".SH SEE ALSO", ".BR rsync (1),", ".BR ssh (1)"]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return _line(text[0].upper() + text[1:] + ".")


def _paragraphs(text: str) -> list[str]:
    """Format the blocks between empty lines. Indented blocks, usage and examples keep their line ends."""
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
        if group.names_only:
            lines.append(", ".join(_names(option) for option in group.options))
            continue
        for option in group.options:
            names = _names(option)
            if option.metavar is not None:
                names += (
                    "=" if option.names[-1].startswith("--") else " "
                ) + rf"\fI{_escaped(option.metavar)}\fR"
            lines += [".TP", names, _line(option.help)]
    return lines


def _names(option: Option) -> str:
    return ", ".join(rf"\fB{_escaped(name)}\fR" for name in option.names)


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
    """Escape a line of text, so that man reads no request at its start."""
    escaped = _escaped(text)
    return "\\&" + escaped if escaped[:1] in (".", "'") else escaped
