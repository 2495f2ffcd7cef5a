"""Objects of a store such as S3, read through fsspec as if they were files."""
