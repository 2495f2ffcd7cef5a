"""The words by which a sync says that its guard stopped it."""

from __future__ import annotations

from rdc.errors import ExitCode

__all__ = ["DEFAULT_SHARE", "is_stop", "stopped_text"]

DEFAULT_SHARE = 50
"""Per cent of the destination's entries beyond which a run with --delete asks on a terminal."""

_SIGN = " entries would go, more than --guard="
_CHANGE_SIGN = " entries would change, more than --guard="


def stopped_text(done: str, going: int, total: int, share: int) -> str:
    """The line about a stopped run. `done`: "changed" or "deleted"."""
    sign = _CHANGE_SIGN if done == "changed" else _SIGN
    return f"nothing was {done}: {going:,} of {total:,}{sign}{share}%"


def is_stop(event: object) -> bool:
    """Whether an event is that line. It may come from the far side, so it leads to a question at most."""
    from rdc.progress import Problem

    if not isinstance(event, Problem) or event.code is not ExitCode.MAX_DELETE:
        return False
    return _SIGN in event.message or _CHANGE_SIGN in event.message
