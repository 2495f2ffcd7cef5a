"""Tests of rdc.session.trees: both trees before they are compared."""
