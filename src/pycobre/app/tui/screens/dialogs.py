"""Questions, with buttons: by key, by mouse, and Escape is no."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label

__all__ = ["AskNumber", "Question"]

_CSS = """
{name} {{ align: center middle; }}
{name} > Vertical {{
    width: 64; max-width: 96%; height: auto; padding: 1 2; background: $surface; border: round $primary;
}}
{name} Label {{ width: 100%; margin-bottom: 1; }}
{name} Horizontal {{ height: auto; }}
{name} Button {{ margin-right: 1; min-width: 8; }}
"""


class Question(ModalScreen[str | None]):
    """Gives the key of the answer, or None. `answers` are keys and words, the first one is chosen at first."""

    DEFAULT_CSS = _CSS.format(name="Question")
    BINDINGS = [  # noqa: RUF012
        Binding("escape", "answer_none", "Cancel"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, text: str, answers: Sequence[tuple[str, str]] = (("y", "Yes"), ("n", "No"))) -> None:
        super().__init__()
        self._text = text
        self._answers = list(answers)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._text, markup=False)
            with Horizontal():
                for key, word in self._answers:
                    yield Button(f"{word} ({key})", id=f"answer-{key}")

    def on_key(self, event: Key) -> None:
        if event.character is not None and event.character in dict(self._answers):
            event.stop()  # the screen behind has keys of its own
            self.dismiss(event.character)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(str(event.button.id).removeprefix("answer-"))

    def action_answer_none(self) -> None:
        self.dismiss(None)


class AskNumber(ModalScreen[int | None]):
    """Asks for a whole number above `above`; what is none of these is said, and asked again."""

    DEFAULT_CSS = _CSS.format(name="AskNumber") + "AskNumber #wrong { color: $error; margin: 1 0 0 0; }"
    BINDINGS = [Binding("escape", "answer_none", "Cancel")]  # noqa: RUF012

    def __init__(self, text: str, value: int, above: int) -> None:
        super().__init__()
        self._text, self._value, self._above = text, value, above

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._text, markup=False)
            yield Input(str(self._value), id="number")
            yield Label("", id="wrong")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        said = event.value.strip().replace(",", "")
        number = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None
        if number is None or number <= self._above:
            self.query_one("#wrong", Label).update(
                f"expected a whole number above {self._above}, got {said[:20]!r}"
            )
            return
        self.dismiss(number)

    def action_answer_none(self) -> None:
        self.dismiss(None)
