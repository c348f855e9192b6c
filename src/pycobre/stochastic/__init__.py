"""Where future numbers come from: streams, inflow models, correlation, openings, samplers."""
