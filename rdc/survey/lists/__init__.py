"""What one walk met, divided into a list for each slice of a scan."""
