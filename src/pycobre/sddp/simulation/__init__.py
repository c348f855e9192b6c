"""sddp/simulation."""
