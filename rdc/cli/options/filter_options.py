"""The options that choose files, for all verbs that walk trees."""

from __future__ import annotations

import os
from collections.abc import Callable

from rdc.cli.environment import Environment
from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits.paths import FILTER_BYTES
from rdc.model.sync import FilterRule, RuleAction

__all__ = ["FILTER_GROUP", "ReadRuleFile", "read_rule_file", "read_rules"]

ReadRuleFile = Callable[[str], bytes]
"""Maps the name of a rule file to its content; '-' is stdin. Raises RdcError."""

FILTER_GROUP = OptionGroup(
    "Choosing files (one list in the order given, the first rule that matches decides)",
    (
        Option(("--exclude",), "leave out what matches", "PATTERN"),
        Option(("--include",), "take what matches", "PATTERN"),
        Option(("--exclude-from",), "one pattern a line, ';' and '#' begin comments", "FILE"),
        Option(("--include-from",), "the same for --include ('-' is stdin)", "FILE"),
        Option(("-f", "--filter"), "'- PATTERN', '+ PATTERN' or '. FILE', a file of such rules", "RULE"),
    ),
)


def read_rules(words: Words, read_rule_file: ReadRuleFile) -> tuple[FilterRule, ...]:
    """Returns the rules of all options of FILTER_GROUP, in the order typed. Raises RdcError."""
    keys = {"--exclude", "--include", "--exclude-from", "--include-from", "--filter"}
    chosen = [given for given in words.given if given.key in keys]
    if not chosen:
        return ()
    from rdc.tree.filters import FilterList
    from rdc.tree.rule_text import RuleListBuilder

    builder = RuleListBuilder(read_rule_file)
    for given in chosen:
        action = RuleAction.INCLUDE if given.key.startswith("--include") else RuleAction.EXCLUDE
        if given.key.endswith("-from"):
            builder.add_lines(read_rule_file(given.value), action, name=given.value)
        elif given.key == "--filter":
            builder.add_filter(os.fsencode(given.value))
        else:
            builder.add_pattern(os.fsencode(given.value), action)
    rules = builder.rules()
    # Checks the bounds of the list, so that the user sees a mistake before rdc connects.
    FilterList(rules)
    return rules


def read_rule_file(
    name: str, environment: Environment, *, limit: int = FILTER_BYTES, of: str = "patterns"
) -> bytes:
    """Returns the content of a rule file; '-' is stdin. Raises RdcError if it is unreadable or too long.

    `limit`: in bytes. `of`: what the file holds, for error messages.
    """
    if name == "-":
        data = environment.stdin.read(limit + 1)
    else:
        try:
            # O_NONBLOCK: a fifo without a writer must not block the run.
            with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                # A pipe has a writer, such as <(find src), which may still be at work.
                os.set_blocking(file.fileno(), True)
                data = file.read(limit + 1)
        except OSError as error:
            raise RdcError(f"{name}: cannot read {of}: {error.strerror}", code=ExitCode.FILE_IO) from error
    if len(data) > limit:
        raise UsageError(f"{name}: more than {limit} bytes of {of}; rdc takes no more")
    return data
