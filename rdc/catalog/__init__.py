"""The catalog of file signatures on this machine, and the signer that sync, scan and similar share."""
