"""Tests of README.md and of the manual: it builds, it is complete, and its commands run."""
