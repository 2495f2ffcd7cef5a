"""Parses options as rsync does, from a table that also generates the help text.

argparse does not fit for two reasons. It reports a missing value for `--filter '-_*.o'` and `--exclude -x`;
popt, which rsync uses, takes the next word as the value whatever its first character is. And argparse cannot
refuse an option by name with advice, as rdc does for a hundred options of rsync.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rdc.errors import UsageError
from rdc.lean.records import dataclass
from rdc.model.options import Declared, Option, parse_directory, parse_size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "Given",
    "Option",
    "OptionGroup",
    "Words",
    "options_help",
    "parse_words",
    "parsed_value",
    "read_size",
]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that stand below one title in the help text."""

    title: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One option of a command line."""

    key: str
    value: str
    """The value; empty for a flag."""


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed command line. The options keep their order, which filter rules need."""

    given: tuple[Given, ...]
    operands: tuple[str, ...]

    def has(self, *keys: str) -> bool:
        """Return whether one of these options is given."""
        return any(given.key in keys for given in self.given)

    def count(self, key: str) -> int:
        """How often this option is given."""
        return sum(given.key == key for given in self.given)

    def last(self, *keys: str) -> Given | None:
        """Return the last of these options, which overrides the earlier ones; None without any."""
        return next((given for given in reversed(self.given) if given.key in keys), None)


def parse_words(
    words: Sequence[str],
    groups: Sequence[OptionGroup],
    refused: Mapping[str, str],
    *,
    command: str,
) -> Words:
    """Parse options and operands in any order. `--` ends the options.

    The forms are `-avn`, `-e CMD`, `-eCMD`, `--option VALUE` and `--option=VALUE`. `refused` maps the name of
    an option that rdc lacks to the advice for its error message. `command` is the command that error messages
    name. Raises UsageError, one line that names the option.
    """
    reader = _Reader(groups, refused, command)
    given: list[Given] = []
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            option = reader.find(name)
            if option.metavar is None and equals:
                raise reader.error(f"{name} takes no value")
            if option.metavar is not None and not equals:
                value = reader.value(option, name, next(rest, None))
            given.append(Given(option.key, value))
        elif word.startswith("-") and word != "-":
            letters = word[1:]
            while letters:
                name, letters = "-" + letters[0], letters[1:]
                option = reader.find(name)
                value = ""
                if option.metavar is not None:
                    value = (
                        letters.removeprefix("=") if letters else reader.value(option, name, next(rest, None))
                    )
                    letters = ""
                given.append(Given(option.key, value))
        else:
            operands.append(word)
    return Words(tuple(given), tuple(operands))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Finds options by name and words the error messages of one command."""

    groups: Sequence[OptionGroup]
    refused: Mapping[str, str]
    command: str

    def find(self, name: str) -> Option:
        for group in self.groups:
            for option in group.options:
                if name in option.names:
                    return option
        advice = self._refusal(name)
        if advice is not None:
            raise UsageError(f"rdc has no {name}" + (f": {advice}" if advice else ""))
        raise self.error(f"unknown option {name}{self._suggestion(name)}")

    def value(self, option: Option, name: str, word: str | None) -> str:
        if word is None:
            raise self.error(f"{name} needs a value: {name} {option.metavar}")
        return word

    def error(self, message: str) -> UsageError:
        return UsageError(f"{message} (see {self.command} --help)")

    def _refusal(self, name: str) -> str | None:
        if name in self.refused:
            return self.refused[name]
        if name.startswith("--no-") and len(name) > len("--no-"):
            plain = name.removeprefix("--no-")
            positive = ("-" if len(plain) == 1 else "--") + plain
            if positive in self.refused:
                return f"{positive} is never on, so it can be left out"
            if any(positive in option.names for group in self.groups for option in group.options):
                return f"{positive} cannot be turned off"
        return None

    def _suggestion(self, name: str) -> str:
        import difflib

        known = [name for group in self.groups for option in group.options for name in option.names]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.75) if len(name) > 2 else []
        return f"; did you mean {near[0]}?" if near else ""


def parsed_value(given: Given, declared: Declared) -> Any:
    """Return the value of an option as the field of SyncOptions that it is declared at has it. Raises
    UsageError."""
    if not given.value and declared.parse is parse_directory:
        raise UsageError(f"{given.key} needs a directory, such as: {given.key}=.parts")
    try:
        value = given.value if declared.parse is None else declared.parse(given.value)
        declared.check_value(value)
    except ValueError as error:
        raise UsageError(f"{given.key}={given.value}: {error}") from None
    return value


def read_size(option: str, text: str) -> int:
    """Return the bytes that `text` means, as in rdc.model.options. Raises UsageError."""
    try:
        return parse_size_of(text)
    except ValueError as error:
        raise UsageError(f"{option}={text}: {error}") from None


def options_help(groups: Sequence[OptionGroup]) -> str:
    """Return the option part of a --help text: one line per option, explanations aligned."""
    lines = []
    for group in groups:
        lines.append(f"\n{group.title}:")
        for option in group.options:
            names = ", ".join(option.names)
            if option.metavar is not None:
                names += ("=" if option.names[-1].startswith("--") else " ") + option.metavar
            separator = "" if len(names) < 27 else "\n" + " " * 29
            lines.append(f"  {names:<27}{separator}{option.help}".rstrip())
    return "\n".join(lines) + "\n"
