"""Tests of the project as a whole: layers, sizes, words, documents, the public package and start-up."""
