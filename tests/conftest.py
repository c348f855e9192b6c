"""Settings of the whole suite."""

from hypothesis import HealthCheck, settings

# No timed assertions, the same examples every time, and nothing written beside the tests.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
