"""The progress bar in a real notebook kernel; elsewhere there is none."""

import subprocess
import sys
from typing import Any

from kernel import printed, run_in_kernel

TRAIN = """
import pycobre
from pycobre.testing.problems import reservoir
result = pycobre.train(reservoir(4), {{"forward_passes": 2, "iteration_limit": 3}}{more})
print(result.policy_digest)
"""


def shown(messages: list[tuple[str, dict[str, Any]]]) -> list[dict[str, str]]:
    """The states of the bar."""
    return [content["data"] for kind, content in messages if kind in ("display_data", "update_display_data")]


def test_a_notebook_shows_one_bar_that_ends_full() -> None:
    messages = run_in_kernel(TRAIN.format(more=""))
    assert [kind for kind, _ in messages].count("display_data") == 1
    last = shown(messages)[-1]
    assert last["text/plain"].startswith("iteration 3 of 3 · lower bound ")
    assert last["text/plain"].endswith(" · done")
    assert '<progress max="3" value="3"' in last["text/html"]
    identities = {
        content["transient"]["display_id"]
        for kind, content in messages
        if kind in ("display_data", "update_display_data")
    }
    assert len(identities) == 1


def test_workers_feed_the_bar_and_the_caller_too() -> None:
    code = TRAIN.format(more=", num_workers=2, progress_callback=lambda event: seen.append(event.kind)")
    messages = run_in_kernel(f"seen = []{code}print('seen', seen.count('iteration_finished'))")
    assert '<progress max="3" value="3"' in shown(messages)[-1]["text/html"]
    assert "seen 6" in printed(messages)  # of both workers


def test_a_simulation_counts_scenarios() -> None:
    code = TRAIN.format(more=", progress=False")
    messages = run_in_kernel(f"{code}pycobre.simulate(reservoir(4), result.policy, 7)")
    assert shown(messages)[-1]["text/plain"].startswith("scenario 7 of 7 · ")


def test_an_error_is_said_in_the_bar() -> None:
    code = TRAIN.format(more=", progress_callback=lambda event: 1 / 0")
    messages = run_in_kernel(f"try:\n    exec({code!r})\nexcept ZeroDivisionError:\n    print('caught')")
    assert shown(messages)[-1]["text/plain"].endswith(" · ended by ZeroDivisionError")
    assert "caught" in printed(messages)


def test_nothing_is_shown_where_it_was_not_asked_for_or_cannot_be_seen() -> None:
    assert shown(run_in_kernel(TRAIN.format(more=", progress=False"))) == []
    code = TRAIN.format(more="") + "import sys; assert 'IPython' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) == 1
    assert done.stderr == ""
