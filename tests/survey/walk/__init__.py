"""Tests of rdc.survey.walk: the files that a scan or search finds."""
