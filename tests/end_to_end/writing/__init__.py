"""How files are written: in place, sparse, delayed, or by way of another directory."""
