"""Tests of rdc as its users run it: whole syncs, checks, watches and undos, a folder for each feature."""
