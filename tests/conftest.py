"""Settings of the whole suite."""

from hypothesis import settings

# No timed assertions, the same examples every time, and nothing written beside the tests.
settings.register_profile("suite", deadline=None, derandomize=True, database=None)
settings.load_profile("suite")
