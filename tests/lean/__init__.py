"""Tests of rdc.lean: the stand-ins for slow modules, beside those modules."""
