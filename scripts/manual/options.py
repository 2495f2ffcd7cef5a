"""The pages of the verbs: usage and options from rdc.cli, with an example for each option."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS
from rdc.cli.verb import VERBS, load_verb
from rdc.model.options import Option
from scripts.manual.notes import MissingNoteError, notes

if TYPE_CHECKING:
    from rdc.cli.verb import Verb

PAGES = {verb: f"reference/verbs/{'index-verb' if verb == 'index' else verb}.md" for verb in VERBS}
"""The path of the page of each verb. MkDocs takes a page called index.md for that of its folder."""

DECLARED = ("sync", "watch", "check", "unite", "run", "jobs")
"""The verbs whose options have their examples where they are declared, in rdc.model.sync and rdc.cli."""


def verb_page(name: str) -> str:
    """Return the page of one verb."""
    verb = load_verb(name)
    introduction, closing = verb.help_text.introduction, verb.help_text.closing
    summary = verb.SUMMARY[0].upper() + verb.SUMMARY[1:]
    parts = [f"# rdc {name}", f"{summary}.", *_blocks(introduction), *_more(name)]
    for group in verb.OPTIONS:
        title, _, explanation = group.title.partition(" (")
        parts.append(f"## {title}")
        if explanation:
            parts.append(_sentence(explanation.removesuffix(")")))
        parts += [_option(name, option) for option in group.options]
    parts += _blocks(closing)
    parts.append("All verbs share one list of [exit codes](../exit-codes.md).")
    return "\n\n".join(parts) + "\n"


def anchor(option: Option) -> str:
    """Return the anchor of an option on its verb's page."""
    return "option-" + option.key.lstrip("-") + ("-capital" if option.key[1:2].isupper() else "")


def spelled(option: Option) -> list[str]:
    """All spellings of an option, with its value."""
    if option.metavar is None:
        return list(option.names)
    return [f"{name}{'=' if name.startswith('--') else ' '}{option.metavar}" for name in option.names]


def example(verb: str, option: Option) -> str:
    """Return a command line with this option: as declared with it, in docs/notes/options.toml, or by a
    rule."""
    if option.example and verb in DECLARED:
        return f"rdc {verb} {option.example}"
    table = notes("options")
    own = table["examples"].get(verb, {}).get(option.key)
    if own is not None:
        return str(own)
    name = option.names[0] if len(option.names[0]) > 2 else option.key
    if option.key == "--help":
        return f"rdc {verb} --help"
    word = name
    if option.metavar is not None:
        values = table["values"]
        value = values.get(option.key, values.get(option.metavar))
        if value is None:
            raise MissingNoteError(f"docs/notes/options.toml: no value for {option.key} of rdc {verb}")
        word = f"{name}={shlex.quote(value)}" if name.startswith("--") else f"{name} {shlex.quote(value)}"
    operands = table["operands"].get(verb)
    if operands is None:
        raise MissingNoteError(f"docs/notes/options.toml: no operands for rdc {verb}")
    return f"rdc {verb} {word} {operands}".rstrip()


def more_about(verb: str, option: Option) -> str:
    """Return the text about an option beyond its help: from docs/notes for this verb, else from where it is
    declared."""
    table = notes("options")
    text = table.get(verb, {}).get(option.key) or option.note or table["all"].get(option.key, "")
    return inspect.cleandoc(text).strip()


def refused_table() -> str:
    """Return the unsupported options of rsync, with the advice that the error message gives."""
    advice: dict[str, list[str]] = {}
    for name, text in REFUSED_RSYNC_OPTIONS.items():
        advice.setdefault(text, []).append(name)
    rows = [
        f"| {', '.join(f'`{name}`' for name in names)} | {escaped(text)} |" for text, names in advice.items()
    ]
    return "\n".join(["| option of rsync | what rdc says |", "|---|---|", *rows])


def verb_table() -> str:
    """All verbs, with links to their pages."""
    rows = [
        f"| [`rdc {verb}`]({PAGES[verb].removeprefix('reference/')}) | {load_verb(verb).SUMMARY} |"
        for verb in VERBS
    ]
    return "\n".join(["| verb | what it does |", "|---|---|", *rows])


def _option(verb: str, option: Option) -> str:
    terms = ", ".join(f"`{text}`" for text in spelled(option))
    lines = [f'<a id="{anchor(option)}"></a>{terms}', f":   {_sentence(option.help)}"]
    more = more_about(verb, option)
    if more:
        lines += ["", *(f"    {line}" if line else "" for line in more.splitlines())]
    lines += ["", "    ```sh", f"    {example(verb, option)}", "    ```"]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    text = escaped(text[0].upper() + text[1:])
    return text if text.endswith((".", "?")) else text + "."


def escaped(text: str) -> str:
    """Make words with markup of their own into code: '- PATTERN', *.o, <name>."""
    text = re.sub(r"'([^']*[-*+;#!][^']*|-|;|#)'", r"`\1`", text)
    return text.replace("<", "&lt;").replace("*", "\\*") if "`" not in text else text


def _blocks(text: str) -> Iterator[str]:
    """Yield the parts of a help text that are not options: prose as prose, usage and examples as code."""
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        rows = block.split("\n")
        if rows[0].endswith(":") and len(rows) > 1 and rows[1].startswith(" "):
            yield rows.pop(0)
        if rows[0].startswith("Usage:"):
            yield "```text\n" + block.replace("Usage: ", "       ").replace("       ", "") + "\n```"
        elif all(row.startswith(" ") for row in rows):
            commands = all(re.match(r" +(?:rdc|ssh|mv) | {12,}", row) for row in rows)
            lines = _commented(rows) if commands else [row[2:] for row in rows]
            yield "\n".join(["```sh" if commands else "```text", *lines, "```"])
        elif any(rows):
            yield escaped(" ".join(rows))


def _commented(rows: list[str]) -> list[str]:
    """Commands with what they do above them. In a help text it stands beside them, or in the next row."""
    commands: list[tuple[str, str]] = []
    for row in rows:
        command, _, explanation = row.strip().partition("  ")
        if row.startswith(" " * 12):
            commands[-1] = (commands[-1][0], command)
        else:
            commands.append((command, explanation.strip()))
    return [line for command, text in commands for line in (f"# {text}", command) if line != "# "]


def _more(verb: str) -> list[str]:
    text = notes("options").get("pages", {}).get(verb, "").strip()
    return [text] if text else []


def unused_notes() -> list[str]:
    """Return notes about options that do not exist, for a test."""
    table = notes("options")
    keys = {verb: {option.key for option in _options(load_verb(verb))} for verb in VERBS}
    anywhere = set().union(*keys.values())
    unused = [f"all {key}" for key in table.get("all", {}) if key not in anywhere]
    for part in (table, table["examples"]):
        for verb in VERBS:
            unused += [f"{verb} {key}" for key in part.get(verb, {}) if key not in keys[verb]]
    return unused


def _options(verb: Verb) -> Iterator[Option]:
    for group in verb.OPTIONS:
        yield from group.options
