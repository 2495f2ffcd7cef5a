"""Tests of sync options, most of them in comparison with rsync."""
