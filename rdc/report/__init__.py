"""Output of a job, for people and for programs: lines on a terminal, and JSON events."""
