"""The limit of open descriptors: raised if possible, and shared among the caches that keep files open."""

from __future__ import annotations

import os

__all__ = ["ENOUGH_DESCRIPTORS", "OTHER_DESCRIPTORS", "raise_descriptor_limit", "share_of_descriptors"]

ENOUGH_DESCRIPTORS = 2048
"""With this limit every cache may reach its maximum. A sync with both ends in one process needs 1,384
descriptors: two caches of 64 directories, a commit group of 256 files in as many directories, twice 256 small
files read together, 64 bases, twice 64 calls in flight and about 40 others.

The limit is inherited by programs that rdc starts, so it is no higher. Programs that close all descriptors
one by one stay fast. Programs that use select(2), which knows 1,024, keep room.
"""

OTHER_DESCRIPTORS = 40
"""Descriptors outside the caches: standard streams, a transport, the catalog, signing threads, the current
file and its bases. About 30 were counted."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit to ENOUGH_DESCRIPTORS, or as far as the hard limit allows.

    Shells usually set 1,024, some 256; programs may raise it.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share_of_descriptors(most: int) -> int:
    """Return how many of `most` descriptors a cache may use under the present limit, at least 1."""
    limit = os.sysconf("SC_OPEN_MAX")  # RLIMIT_NOFILE; -1: there is none
    if limit < 0 or limit >= ENOUGH_DESCRIPTORS:
        return most
    return max(1, most * (limit - OTHER_DESCRIPTORS) // (ENOUGH_DESCRIPTORS - OTHER_DESCRIPTORS))
