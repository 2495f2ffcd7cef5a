"""What people and programs see of a job: lines on a terminal, JSON events."""
