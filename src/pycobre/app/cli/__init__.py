"""The command line: one module per command, loaded when that command is asked for.

To add a command, write `cli/<name>.py` with

    def add_arguments(parser: argparse.ArgumentParser) -> None: ...
    def run(arguments: argparse.Namespace) -> int: ...          # the exit code

and give it a line in `COMMANDS`. An exception becomes an exit code and a hint in one place (`app.failures`).

commands   init, run, solve, validate, schema, import_, migrate, simulate, runs, watch, report, export,
           compare, compare_bits, diff, verify, doctor, mcp, replay, version
parser     the argument parser and its hints
display    what a run prints: header, events, summary
screen     the events as a live table, plain lines or JSON lines
summary    the first and the last lines of a run
"""

from __future__ import annotations

import importlib
import json
import keyword
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

import pycobre
from pycobre.app.cli.parser import Parser
from pycobre.app.failures import OUTPUT_CLOSED, describe, error_document, exit_code
from pycobre.app.streams import discard, open_standard_streams, print_error
from pycobre.errors import CobreError
from pycobre.events import RunFailed

#: What each command does, in the order of `pycobre --help`.
COMMANDS = {
    "init": "write a bundled example, or a synthetic system, as a case directory",
    "run": "train a policy for a case, simulate it and write the results",
    "solve": "train and simulate a problem in MSPFormat, StochOptFormat or SMPS",
    "validate": "report all errors and warnings of a case",
    "schema": "write the JSON Schemas of a case's files, for editors",
    "import": "convert a deck of NEWAVE or DECOMP, or tables of a spreadsheet, to a case",
    "migrate": "write a case of the 0.5 form in the 0.18 form",
    "simulate": "simulate a trained policy on a case",
    "runs": "list the runs in a result directory",
    "watch": "watch runs in a terminal: bounds, ranks, messages, results",
    "report": "write an HTML report of a run, and its figures as PNG",
    "export": "write the tables of a run, or a case, as CSV files or a workbook",
    "compare": "compare costs, prices, storage and deficits of two runs; --bits: bit by bit",
    "diff": "say what changed between two cases, by plant and date",
    "verify": "run a case on all backends and compare the results bit by bit",
    "doctor": "report which backends and packages work on this machine",
    "mcp": "answer questions about cases and runs to MCP clients, such as assistants",
    "replay": "re-solve a failed LP in isolation",
    "version": "print the version",
}

_PURPOSE = "multistage stochastic planning with the same bits on every machine"
_NEXT = "Options of a command: pycobre COMMAND --help"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    open_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(words).parse(words)
    arguments.words = words
    warnings.showwarning = lambda message, *rest: print_error(f"warning: {message}")
    command = _command(arguments.command)
    try:
        code: int = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return OUTPUT_CLOSED
    except (CobreError, OSError) as error:
        print_error(describe(error))
        _print_record(getattr(arguments, "format", "human"), error)
        return exit_code(error)
    except KeyboardInterrupt as error:
        print_error("interrupted")
        return exit_code(error)
    return code


def _print_record(form: str, error: BaseException) -> None:
    """The error for the program that reads standard output, in the form it asked for."""
    if form == "human":
        return
    document = error_document(error)
    text = (
        json.dumps({"error": document}, indent=2)
        if form == "json"
        else json.dumps(RunFailed(error=document).to_dict())
    )
    try:
        print(text, flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def _parser(words: Sequence[str]) -> Parser:
    """A parser that knows all commands by name but loads only the one that is asked for."""
    parser = Parser(prog="pycobre", description=_PURPOSE, epilog=_NEXT)
    parser.add_argument("--version", action="version", version=f"pycobre {pycobre.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        command.set_defaults(parser=command)
        if name == asked:
            _command(name).add_arguments(command)
    return parser


def _command(name: str) -> ModuleType:
    """The module of a command; one that Python uses as a word of its own has an underscore behind it."""
    return importlib.import_module(f"pycobre.app.cli.{name}{'_' * keyword.iskeyword(name)}")
