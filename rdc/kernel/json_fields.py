"""Texts of JSON lines."""

from __future__ import annotations

from rdc.kernel.lines._lines import json_texts

__all__ = ["json_texts"]
