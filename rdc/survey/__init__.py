"""What trees hold: measuring files and finding those that are alike, without changing anything."""
