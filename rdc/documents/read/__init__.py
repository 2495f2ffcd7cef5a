"""Reads documents: plain files, rows of JSONL and rows of Parquet, in batches."""
