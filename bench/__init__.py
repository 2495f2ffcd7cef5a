"""Benchmarks, one a module: `.venv/bin/python -m bench.sync --help`. `bench.harness` is what they share."""
