"""A decoder of JSON objects of which only texts are used."""

from __future__ import annotations

import json

__all__ = ["json_decoder"]


def json_decoder() -> json.JSONDecoder:
    """Return a decoder that takes numbers of any length. CPython reads no integer of more than 4,300 digits,
    and takes quadratic time for long ones; a number has no text, so its value does not matter."""
    return json.JSONDecoder(parse_int=_number, parse_float=_number)


def _number(_: str) -> int:
    return 0
