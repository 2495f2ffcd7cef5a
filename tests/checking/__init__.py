"""Tests of rdc.checking: what a comparison of two trees promises."""
