"""Tests of rdc.model: values that cross package borders."""
