"""Frozen values that cross package borders; no behaviour beyond validation and views."""
