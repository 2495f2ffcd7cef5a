"""`rdc config show`: lists the settings of all runs and where each comes from."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import (
    HELP,
    SETTINGS,
    Environment,
    OptionGroup,
    chosen_settings,
    host_settings,
    parse_words,
    settings_file,
)
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, UsageError, printable

SUMMARY = "show the settings for all runs, and where each comes from"

SUBVERBS = ("show",)

OPTIONS = (OptionGroup("Options", (HELP,)),)


_INTRODUCTION = """\
Usage: rdc config show

Options override environment variables, and these override the file ~/.config/rdc/config.toml (or
rdc/config.toml in $XDG_CONFIG_HOME). A line of the file is, for example: timeout = 60

A table [hosts.NAME] of the file has settings for connections to NAME: bwlimit, compress, keys, remote-path,
rsh and timeout.

Settings and their environment variables:

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
    for host, settings in host_settings(environment.environ).items():
        environment.data(f"\n[hosts.{printable(host)}]\n")
        for each in settings:
            environment.data(f"{each.setting.key:<14}{printable(each.value)}\n")
    return ExitCode.OK
