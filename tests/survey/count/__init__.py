"""Tests of rdc.survey.count: what a scan counts, in bounded memory."""
