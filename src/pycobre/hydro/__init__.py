"""Power-system equations: from a case to a multistage problem."""
