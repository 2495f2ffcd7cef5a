# ruff: noqa: F403 - in a stub it exports all names
from rdc.kernel._kernel import *

VARIANTS: tuple[str, ...]

def choose_variant(demand: str | None = None) -> None: ...
