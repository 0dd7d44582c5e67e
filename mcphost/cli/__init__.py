"""The command line: what was asked for, the host around it, and how the process ends.

Knows signals and exit codes; its modules know the words and what each command needs. Refuses to know what a command
prints. Everything that takes time to import is imported by the command that needs it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from mcphost.cli.parser import parse
from mcphost.cli.requirements import UNEXPECTED
from mcphost.errors import McphostError

BROKEN_PIPE: Final = 141
"""Exit code when nobody reads the answer, as a shell reports SIGPIPE."""

INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Without ``argv`` the process is ours: it starts and ends as fast as it can."""
    if argv is None:
        _open_streams()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
        gc.disable()  # until everything is imported, see mcphost.cli.run
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # nobody else's code in our checks, nor a search
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
        code: int = options.run(options)
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        return BROKEN_PIPE
    except Exception as error:
        return _explain(error)


def _open_streams() -> None:
    """Streams that are closed lead nowhere, so that no file takes their place and no remark is taken for an answer."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _explain(error: BaseException) -> int:
    from mcphost.cli.output import Signalled, exit_for, remark, remarks_on

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McphostError):
        for sentence in remarks_on(error):
            remark(sentence)
        return exit_for(error)
    if isinstance(error, Signalled):
        return 128 + error.number
    # Where and what kind, but not its text and no locals: they may hold a secret.
    remark(f"something in mcphost went wrong: {type(error).__name__} at {_place(error)}; please report this")
    return UNEXPECTED


def _place(error: BaseException) -> str:
    """The innermost line of ours that the error passed."""
    own, place = os.path.dirname(os.path.dirname(__file__)), "an unknown place"
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(own):
            place = f"mcphost{file.removeprefix(own)}:{step.tb_lineno}"
        step = step.tb_next
    return place
