"""The forms of annotations that rdc.lean.checks reads are those that checked records use."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module

import pytest

from rdc.lean import checks
from tests.support.project_paths import modules, name_of

NAME = r"[A-Za-z]\w*"
FORM = re.compile(rf"{NAME}( \| {NAME})*|tuple\[{NAME}( \| {NAME})*, \.\.\.\]( \| None)?")
CHECKS = re.compile(r"check_(fields|types)\(self\)")


def checked_records() -> list[tuple[str, str]]:
    """Return the module and name of each class that calls check_fields or check_types, or is Checked."""
    found = []
    for path in modules():
        text = path.read_text()
        if CHECKS.search(text) or "Checked" in text:
            found += [
                (name_of(path), node.name)
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.ClassDef)
                and node.name != "Checked"
                and (CHECKS.search(ast.unparse(node)) or "Checked" in map(ast.unparse, node.bases))
            ]
    return found


RECORDS = checked_records()


def test_there_are_some() -> None:
    assert len(RECORDS) > 15


@pytest.mark.parametrize(("module", "name"), RECORDS, ids=[name for _, name in RECORDS])
def test_each_annotation_has_a_form_that_is_read(module: str, name: str) -> None:
    record = getattr(import_module(module), name)
    for text in inspect.get_annotations(record).values():
        assert FORM.fullmatch(text), f"{name}: {text}"
    checks._read_fields(record)


class Made:
    """Stands for a record: its module has the names, and each test sets the annotation."""

    field: object = None


@pytest.mark.parametrize(
    ("form", "taken", "refused"),
    [
        ("int", (1,), (True, 1.0, None, "1")),
        ("float", (1, 1.5), (True, "1")),
        ("int | None", (1, None), (False, "1")),
        ("str | bytes | None", ("", b"", None), (1, ())),
        ("tuple[int, ...]", ((), (1, 2)), ([], (1, "2"), (True,), None)),
        ("tuple[int | None, ...]", ((), (1, None)), ((1, "2"), None)),
        ("tuple[int, ...] | None", ((), (1, 2), None), ([], (1, "2"), (None,))),
        ("object", (1, None, True), ()),
    ],
)
def test_what_a_form_means(form: str, taken: tuple[object, ...], refused: tuple[object, ...]) -> None:
    record = type("Record", (Made,), {"__annotations__": {"field": form}, "__module__": __name__})
    made = record()
    for value in taken:
        made.field = value
        checks.check_fields(made)
    for value in refused:
        made.field = value
        with pytest.raises(TypeError, match=r"Record\.field"):
            checks.check_fields(made)


@pytest.mark.parametrize(
    "form",
    ["int | tuple[int, ...]", "tuple[int, str]", "dict[str, int]", "list[int]"],
)
def test_another_form_is_no_silent_pass(form: str) -> None:
    record = type("Record", (Made,), {"__annotations__": {"field": form}, "__module__": __name__})
    with pytest.raises((TypeError, KeyError)):
        checks.check_fields(record())
