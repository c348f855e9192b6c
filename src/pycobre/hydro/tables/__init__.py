"""hydro/tables."""
