"""Tests of rdc.survey.read."""
