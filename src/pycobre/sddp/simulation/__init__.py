"""Using a policy: simulate scenarios (`simulate`, `recording`) and decide a stage (`decision`)."""
