"""What this machine knows of its files: the one signer that sync, scan and similar share."""
