"""Limits of a watch: changes that wait to be read, and time between full comparisons."""

from __future__ import annotations

TOUCHED_DIRECTORIES = 65_536
"""Directories and renames remembered from one burst of changes, some 10 MB. Beyond this limit the whole tree
is read, which then costs less than reading so many directories singly."""

RETRIED_FILES = 65_536
"""Files remembered as still being written. Beyond this limit the oldest one waits for the next comparison of
the whole trees."""

QUIET_SECONDS = 1.0
"""Seconds without a turn before the command of --on-sync runs. An editor or a checkout is done by then, and a
person does not wait for it."""

RESCAN_SECONDS = 31_536_000
"""Largest number of seconds between two comparisons of whole trees: a year. A larger value means "never"."""
