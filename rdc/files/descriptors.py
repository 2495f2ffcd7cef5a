"""How many files may be open at a time: the limit of descriptors, raised where it may be, and shared out."""

from __future__ import annotations

import os

__all__ = ["ENOUGH_DESCRIPTORS", "OTHER_DESCRIPTORS", "raise_descriptor_limit", "share_of_descriptors"]

ENOUGH_DESCRIPTORS = 2048
"""With so many all that keeps files open may keep its most. A sync whose both ends are here has two caches of
directories (64 each), a group to commit (256 files, each perhaps in a directory of its own), twice 256 small
files that are compared or read together, 64 bases and about 40 others: 1,256. Programs that are started from
here inherit the limit; with this one nobody is slow who closes all descriptors one by one, and whoever waits
by select(2), which knows 1,024, has the rest of these free."""

OTHER_DESCRIPTORS = 40
"""Of the standard streams, a transport, the catalog, threads that sign, and the file at work with its bases:
some 30 were counted."""


def raise_descriptor_limit() -> None:
    """Have ENOUGH_DESCRIPTORS, or as many as this process may give itself: shells have 1,024 mostly, which
    programs may raise, and some are set to 256."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share_of_descriptors(most: int) -> int:
    """As many of `most` as the present limit allows to who keeps files open, one at least."""
    limit = os.sysconf("SC_OPEN_MAX")  # RLIMIT_NOFILE; -1: there is none
    if limit < 0 or limit >= ENOUGH_DESCRIPTORS:
        return most
    return max(1, most * (limit - OTHER_DESCRIPTORS) // (ENOUGH_DESCRIPTORS - OTHER_DESCRIPTORS))
