"""What happened in a run, as sentences: its sessions, its events other than iterations, what its status says."""

from __future__ import annotations

import time
from calendar import timegm
from collections.abc import Iterable, Mapping
from typing import Any

from pycobre._util.frozen import frozen
from pycobre.app.results.record import RunRecord
from pycobre.app.results.status import RunStatus
from pycobre.app.tui.reading.numbers import number, text, whole
from pycobre.app.wording import amount, counted, duration

__all__ = ["Message", "messages_of"]

LATEST = 4e9  #: a time after this is none
_ACTIONS = {"checkpoint": "a checkpoint", "stop": "to stop"}


@frozen()
class Message:
    """`kind` is note, asked, warning or error."""

    at: float | None
    kind: str
    text: str


def messages_of(
    record: RunRecord | None, status: RunStatus | None, events: Iterable[Mapping[str, Any]]
) -> list[Message]:
    """In the order of time; what has no time stands at the end."""
    found = [message for event in events if (message := _of_event(event)) is not None]
    if record is not None:
        found += _of_sessions(record)
    found.sort(key=lambda message: message.at or 0.0)  # stable: those of one second stay in order
    if status is not None:
        told = [message.text for message in found if message.kind == "warning"]
        for each in dict.fromkeys(text(warning) for warning in status.warnings or ()):
            if not any(said.endswith(each) for said in told):
                found.append(Message(None, "warning", each))
        if status.retries:
            said = f"{counted(status.retries, 'LP')} had to be solved again in another way, in this session"
            found.append(Message(None, "warning", f"{said}; the answers are certified"))
    return found


def _of_sessions(record: RunRecord) -> list[Message]:
    found = []
    for place, session in enumerate(record.sessions):
        what = "started" if place == 0 else f"resumed, session {place + 1}"
        where = f"{session.backend}, {counted(session.ranks, 'rank')} × {counted(session.threads, 'thread')}"
        who = f"process {session.pid} on {text(session.host)}"
        found.append(Message(_seconds(session.started), "note", f"{what}: {where}, {who}"))
        if session.state == "running" and place + 1 < len(record.sessions):
            lost = f"session {place + 1} ended without a word: its process was killed or lost"
            found.append(Message(_seconds(record.sessions[place + 1].started), "warning", lost))
    return found


def _seconds(utc: str) -> float | None:
    try:
        return float(timegm(time.strptime(utc, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return None


def _of_event(event: Mapping[str, Any]) -> Message | None:
    said = _sentence(event)
    if said is None:
        return None
    at = number(event.get("at"))
    return Message(at if 0 <= at < LATEST else None, *said)


def _sentence(event: Mapping[str, Any]) -> tuple[str, str] | None:
    iteration = whole(event.get("iteration"))
    match event.get("kind"):
        case "warning":
            after = "" if iteration is None else f"iteration {iteration}: "
            return "warning", f"{after}{text(event.get('message', ''))}"
        case "control_applied":
            action, limit = text(event.get("action")), whole(event.get("value"))
            what = _ACTIONS.get(action, f"for the iteration limit {limit}")
            return "asked", f"asked {what}: done after iteration {iteration}"
        case "checkpoint_written":
            size, spent = number(event.get("size_bytes")), number(event.get("elapsed_s"))
            written = f" ({size / 1e6:.1f} MB in {spent:.2f} s)" if size == size and spent == spent else ""
            return "note", f"checkpoint after iteration {iteration}{written}"
        case "training_started":
            first = whole(event.get("first_iteration")) or 1
            more = f", from iteration {first}" if first > 1 else ""
            sizes = (("node", "nodes"), ("state", "states"), ("forward pass", "forward_passes"))
            said = ", ".join(
                counted(
                    count, one, {"forward pass": "forward passes", "node": "nodes", "state": "states"}[one]
                )
                for one, name in sizes
                if (count := whole(event.get(name))) is not None
            )
            return "note", f"training begins: {said}{more}"
        case "training_finished":
            reason = text(event.get("reason", "")).replace("_", " ")
            count = whole(event.get("iterations")) or 0
            return "note", f"training ended after {counted(count, 'iteration')}: {reason}"
        case "simulation_started":
            return "note", f"simulation of {counted(whole(event.get('scenarios')) or 0, 'scenario')} begins"
        case "simulation_finished":
            mean, half = number(event.get("mean")), number(event.get("half_width"))
            within = "" if half != half else f" ± {amount(half)}"
            return "note", f"simulation ended: mean {amount(mean)}{within}"
        case "run_finished":
            spent = number(event.get("time_s"))
            return (
                "note",
                f"run {text(event.get('state'))} after {duration(spent) if spent == spent else '–'}",
            )
        case "run_failed":
            error = event.get("error")
            why = error.get("message") if isinstance(error, dict) else None
            return "error", f"run failed: {text(why or 'no reason was written')}"
    return None
