"""comm/tcp."""
