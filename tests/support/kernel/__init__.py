"""Inputs and expected results for the C kernel."""
