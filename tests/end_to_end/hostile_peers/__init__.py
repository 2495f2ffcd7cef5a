"""A source that lies or sends too much."""
