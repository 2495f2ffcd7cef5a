"""Tests of rdc.survey.scan: which files a scan reads, and how."""
