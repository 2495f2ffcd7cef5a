"""Tests of rdc.survey.lists."""
