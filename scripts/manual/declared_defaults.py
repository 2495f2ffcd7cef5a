"""Shows the default of an option in the reference of Python, and not what else is declared of it."""

from __future__ import annotations

from typing import Any

import griffe


class DeclaredDefaults(griffe.Extension):
    """Takes the first argument of `option(...)`, as in rdc.model.options, for the value of a field."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if isinstance(attr.value, griffe.ExprCall) and str(attr.value.function) == "option":
            attr.value = attr.value.arguments[0]
