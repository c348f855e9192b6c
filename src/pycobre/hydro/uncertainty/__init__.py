"""hydro/uncertainty."""
