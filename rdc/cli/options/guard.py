"""The option --guard: how much of DST a run may change or delete unasked."""

from __future__ import annotations

from rdc.cli.options.table import Option
from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.environment import Environment
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["GUARD", "NO_GUARD", "asks", "read_guard", "read_share", "with_default_guard"]

GUARD = Option(
    ("--guard",),
    "stop with 25 before more than N% of DST change or go; a terminal is asked (there 50% with --delete)",
    "N%",
)
NO_GUARD = Option(("--no-guard",), "never stop or ask for that")


def read_guard(words: Words) -> int | None:
    """Per cent; None for no guard. Raises UsageError."""
    last = words.last("--guard", "--no-guard")
    if last is None or last.key == "--no-guard":
        return None
    return read_share("--guard", last.value)


def read_share(name: str, text: str) -> int:
    """The per cent of a share such as 50%. Raises UsageError."""
    number = text.removesuffix("%")
    known = number.isascii() and number.isdigit() and len(number) <= 3 and int(number) <= 100
    if number == text or not known:
        raise UsageError(f"{name}={text}: a share from 0% to 100% is expected")
    return int(number)


def asks(words: Words, environment: Environment) -> bool:
    """Whether someone is there who can be asked, and no program reads what is said."""
    silent = words.has("--json", "--dry-run", "--quiet", "--no-guard")
    return not silent and environment.stderr_is_terminal and environment.stdin.isatty()


def with_default_guard(options: SyncOptions, words: Words) -> SyncOptions:
    """`options` with the guard that holds where someone can be asked."""
    from rdc.model.guard import DEFAULT_SHARE
    from rdc.records import replace

    if not options.delete or words.has("--guard", "--no-guard"):
        return options
    return replace(options, guard=DEFAULT_SHARE)
