"""Times, owners, modes, extended attributes, ACLs, hard links and special files."""
