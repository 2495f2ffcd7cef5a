"""Tests of rdc.survey.parts."""
