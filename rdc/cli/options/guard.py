"""The option --guard: how much of DST a run may change or delete unasked."""

from __future__ import annotations

from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.environment import Environment
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["asks", "read_share", "with_default_guard"]


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
    return not silent and environment.stdin.isatty()


def with_default_guard(options: SyncOptions, words: Words) -> SyncOptions:
    """`options` with the guard that holds where someone can be asked."""
    from rdc.model.guard import DEFAULT_SHARE
    from rdc.records import replace

    if not options.delete or words.has("--guard", "--no-guard"):
        return options
    return replace(options, guard=DEFAULT_SHARE)
