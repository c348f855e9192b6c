"""Settings of the whole suite."""

import pytest
from hypothesis import HealthCheck, settings

# No timed assertions, the same examples every time, and nothing written beside the tests.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

# Whoever is first to need an environment with an MPI library makes it, and its neighbours wait for that.
_MPI_TIMEOUT_S = 1200


pytest_plugins = ("studied_case",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that may have to install something get at least the time that it takes."""
    for item in items:
        names = vars(getattr(item, "module", item)).values()
        needs_mpi = any(getattr(name, "__module__", "") == "mpi_environments" for name in names)
        own = item.get_closest_marker("timeout")
        if needs_mpi and (own is None or own.args[0] < _MPI_TIMEOUT_S):
            item.add_marker(pytest.mark.timeout(_MPI_TIMEOUT_S), append=False)
