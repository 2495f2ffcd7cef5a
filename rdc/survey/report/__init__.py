"""A scan report as text, HTML page, JSON, CSV and Parquet, for `rdc scan` and `rdc merge`."""
