"""How content reaches the destination, and what it costs in bytes, round trips and memory."""
