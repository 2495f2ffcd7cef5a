"""calls_at_once: the same call of Python for several items at a time, in place of a loop."""

from __future__ import annotations

from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.depth.depth import Depths
    from rdc.lean.threads import Task

__all__ = ["calls_at_once"]

T = TypeVar("T")
R = TypeVar("R")


def calls_at_once(work: Callable[[T], R], items: Sequence[T], depths: Depths) -> list[R]:
    """Return `work(item)` of each item, in order. So many calls are in flight as `depths` found of others.

    All calls have ended when this returns or raises. It raises the exception of the first item that has one.
    """
    most = min(depths.found, len(items))
    if most <= 1:
        return [work(item) for item in items]
    from rdc.lean.threads import Threads

    threads = Threads(most, "rdc calls")
    tasks: list[Task[R]] = []
    try:
        for item in items:
            tasks.append(threads.submit(work, item))
    except RuntimeError:
        # The system refuses even one thread.
        return [work(item) for item in items]
    finally:
        threads.close()
    return [task.result() for task in tasks]
