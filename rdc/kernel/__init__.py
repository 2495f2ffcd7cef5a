# ruff: noqa: F403 - a checker takes the names from __init__.pyi
"""The kernel: cut points, block search, traits, digest inputs and packed columns, as fast as this CPU can.

cut/reference.py defines the cuts and tests/reference every other name, and `choice` picks the variant that
computes them. KERNEL.md has the map.
"""

from __future__ import annotations

from rdc.kernel import choice
from rdc.kernel._kernel import *

choice.choose()
