"""`rdc config show`: lists the settings of all runs and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import (
    SETTINGS,
    Environment,
    OptionGroup,
    chosen_settings,
    parse_words,
    settings_file,
)
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, UsageError, printable
from rdc.model.options import Option

SUMMARY = "show the settings that hold for all runs, and where each comes from"

SUBVERBS = ("show",)

OPTIONS = (OptionGroup("Options", (Option(("--help",), "show this text"),)),)


_INTRODUCTION = """\
Usage: rdc config show

What an option says overrides the environment, and that the file ~/.config/rdc/config.toml (or
rdc/config.toml in $XDG_CONFIG_HOME), in which a line is such as: timeout = 60

Settings, and the variables that set the same:

""" + "".join(f"  {setting.key:<14}{setting.variable:<18}{setting.help}\n" for setting in SETTINGS)

help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc config` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc config")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if parsed.operands != ("show",):
        raise UsageError("rdc config is followed by show (see rdc config --help)")
    chosen = {each.setting.key: each for each in chosen_settings(environment.environ)}
    path = settings_file(environment.environ)
    if path is not None:
        there = "" if os.path.exists(path) else " (not there)"
        environment.data(f"# {printable(path)}{there}\n")
    for setting in SETTINGS:
        found = chosen.get(setting.key)
        value, source = (found.value, found.source) if found is not None else ("-", "default")
        environment.data(f"{setting.key:<14}{printable(value):<30} {printable(source)}\n")
    return ExitCode.OK
