"""The verbs of the command line: their names, their interface and how one is loaded."""

from __future__ import annotations

from importlib import import_module

from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.cli.environment import Environment
    from rdc.cli.options.table import OptionGroup
    from rdc.errors import ExitCode

__all__ = ["VERBS", "Verb", "load_verb", "load_verbs"]

VERBS = (
    "sync",
    "check",
    "undo",
    "watch",
    "scan",
    "merge",
    "dupes",
    "similar",
    "dedupe",
    "signature",
    "index",
    "catalog",
    "keys",
    "serve",
    "install",
    "config",
    "completions",
)
"""The names of the modules in rdc.cli.verbs. A module loads when a command line names it."""


class Verb(Protocol):
    """The interface of a module in rdc.cli.verbs.

    A module with verbs of its own, such as `rdc catalog show`, lists their names in SUBVERBS.
    """

    SUMMARY: str
    OPTIONS: tuple[OptionGroup, ...]

    def help_text(self) -> str:
        """Returns the text of --help."""

    def run(self, words: Sequence[str], environment: Environment) -> ExitCode:
        """Runs the verb with the words after it. Raises RdcError, which the caller prints."""


def load_verbs() -> dict[str, Verb]:
    """Returns every verb by name."""
    return {name: load_verb(name) for name in VERBS}


def load_verb(name: str) -> Verb:
    """Returns the module of one verb. `name` is one of VERBS."""
    return import_module(f"rdc.cli.verbs.{name}")
