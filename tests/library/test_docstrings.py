"""The examples in the docstrings of all public names are true, and what needs one has one."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import rdc

NOT_IN_PYTHON = {"kernel_name"}
"""Defined in C, without a docstring."""

ALIASES = {"DedupeEvent", "Event", "WatchEvent"}
"""Unions of records, for annotations."""

NAMES = sorted(set(rdc.__all__) - {"__version__", "USER_CATALOG"} - NOT_IN_PYTHON - ALIASES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_docstrings_are_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(getattr(rdc, name)) or ""
    assert text, f"rdc.{name} has no docstring"
    monkeypatch.setenv("RDC_CATALOG", "off")
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(example).failed == 0


FUNCTIONS = sorted(name for name in NAMES if inspect.isfunction(getattr(rdc, name)))


def test_every_function_has_an_example() -> None:
    lacking = [name for name in FUNCTIONS if ">>>" not in (inspect.getdoc(getattr(rdc, name)) or "")]
    assert not lacking


def test_what_a_user_makes_has_an_example() -> None:
    """Records with checked fields are those that a user hands over."""
    made = [name for name in NAMES if hasattr(getattr(rdc, name), "__post_init__")]
    assert len(made) > 10
    lacking = [name for name in made if ">>>" not in (inspect.getdoc(getattr(rdc, name)) or "")]
    assert not set(lacking) - {"DuplicateListing"}
