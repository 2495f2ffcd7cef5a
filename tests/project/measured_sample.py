"""Functions with known measures: tests/project/test_sizes.py counts them."""

from __future__ import annotations


def measured(numbers: list[int]) -> list[int]:
    """Twelve lines without this docstring.

    Seven ways: the function, a loop, an `if`, two further operands, a comprehension and its condition.
    """

    def inner(number: int) -> int:
        # long because it is an example
        if number:
            return number
        return 1

    for number in numbers:
        if number and number > 1 and inner(number):
            return [other for other in numbers if other]
    return []


class Holder:
    """A class of one method."""

    def method(self) -> None:
        """No statement but this docstring."""
