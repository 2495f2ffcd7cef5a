"""The text of HTML pages."""
