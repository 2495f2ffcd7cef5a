"""A comparison of two trees that changes neither: what differs, and how. CHECK.md says what holds."""

from __future__ import annotations
