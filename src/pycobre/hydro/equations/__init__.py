"""hydro/equations."""
