"""Tests of rdc.survey: duplicates, similar files and scans."""
