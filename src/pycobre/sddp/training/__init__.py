"""sddp/training."""
