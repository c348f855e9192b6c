"""The command line: one module per command, loaded when that command is asked for.

To add a command, write `cli/<name>.py` with

    def add_arguments(parser: argparse.ArgumentParser) -> None: ...
    def run(arguments: argparse.Namespace) -> int: ...          # the exit code

and give it a line in `COMMANDS`. An exception becomes an exit code and a hint here, in one place (`exits`).
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence

import pycobre
from pycobre.app.cli.exits import UNREAD, describe, exit_code, silence
from pycobre.app.cli.parser import Parser
from pycobre.errors import CobreError

#: What each command does, in the order of `pycobre --help`.
COMMANDS = {
    "init": "write a bundled example, or a synthetic system, as a case directory",
    "run": "train a policy for a case, simulate it and write the results",
    "validate": "say everything that is wrong or doubtful about a case",
    "migrate": "write a case of the 0.5 form in the 0.18 form",
    "simulate": "simulate a trained policy on a case",
    "report": "draw a run: one page that opens anywhere, and pictures",
    "compare": "say whether two runs are the same, and where they differ",
    "verify": "run a case in many ways and compare every bit of the results",
    "doctor": "say what works on this machine, and why the rest does not",
    "replay": "solve alone an LP that failed inside a run",
    "version": "print the version",
}

_NEXT = "Every command explains itself: pycobre COMMAND --help"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(words).parse(words)
    warnings.showwarning = lambda message, *rest: print(f"warning: {message}", file=sys.stderr)
    command = importlib.import_module(f"pycobre.app.cli.{arguments.command}")
    try:
        code: int = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        return UNREAD
    except (CobreError, OSError) as error:
        print(describe(error), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt as error:
        print("interrupted", file=sys.stderr)
        return exit_code(error)
    return code


def _parser(words: Sequence[str]) -> Parser:
    """A parser that knows all commands by name but loads only the one that is asked for."""
    parser = Parser(prog="pycobre", description=pycobre.__doc__.splitlines()[0], epilog=_NEXT)
    parser.add_argument("--version", action="version", version=f"pycobre {pycobre.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        command.set_defaults(parser=command)
        if name == asked:
            importlib.import_module(f"pycobre.app.cli.{name}").add_arguments(command)
    return parser
