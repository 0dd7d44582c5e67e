"""The command line: parses the arguments, runs the command in a host, and ends the process with an exit code.

Start-up time counts here: a command's module is imported when the command is chosen.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

from mcphost.cli.between import RUN, fast_options
from mcphost.shim import options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import Final

BROKEN_PIPE: Final = 141
"""Exit code if the reader of stdout is gone, as a shell reports SIGPIPE."""

INTERRUPTED: Final = 130

COMPLETE: Final = "__complete"
"""The first word of a shell that asks for completion; the words so far follow, the one at the cursor last."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without ``argv``, take the process's arguments, own its signals, and end it.
    """
    if argv is None:
        _open_streams()
        if (code := _run_between(sys.argv[1:])) is not None:
            os._exit(code)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
        gc.disable()  # until everything is imported, see mcphost.cli.run
        _disable_pydantic_plugins()
    from mcphost.cli.stderr_format import stderr_format_of  # late: a tap does without all that follows

    words = sys.argv[1:] if argv is None else argv
    with stderr_format_of(words):
        code = _run(words)
    if argv is None:
        _end(code)
    return code


def _run_between(words: Sequence[str]) -> int | None:
    """Run a tap or gate, or connect an agent to the screen.

    None for other commands, and for a command line that the parser has to explain.
    """
    if words and words[0] == "serve":
        return _run_serve(words[1:])
    if not words or words[0] not in RUN:
        return None
    run, names = RUN[words[0]], fast_options(words[0])
    # FILE comes first, so that what follows is the same for all.
    file, words = (words[1:2], words[1:]) if words[0] == "record" else ((), words)
    found = options_of(words[1:], tuple(names))
    if found is None or any(each.startswith("-") for each in file):
        return None
    from types import SimpleNamespace  # late: other commands have a parser

    given, program = found
    values = dict.fromkeys([*names.values(), "into"]) | {names[name]: value for name, value in given.items()}
    if file:
        (values["into"],) = file
    # argparse, whose class it stands for, takes as long to load as the interpreter.
    options: Namespace = SimpleNamespace(**values, words=[], program=program)  # type: ignore[assignment]
    try:
        return _command(run)(options)
    except Exception as error:
        return _explain(error)


def _run_serve(words: Sequence[str]) -> int | None:
    from mcphost.cli.commands.serve import run_early  # late: other commands do without

    try:
        return run_early(words)
    except Exception as error:
        return _explain(error)


def _run(words: Sequence[str]) -> int:
    from mcphost.cli.parser import parse  # late: a tap does without

    try:
        if words and words[0] == COMPLETE:
            from mcphost.cli.completion.candidates import answer_shell  # a command that no parser has

            return answer_shell(words[1:])
        options = parse(words)
        return _command(options.run)(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
        return BROKEN_PIPE
    except Exception as error:
        return _explain(error)


def _command(name: str) -> Callable[[Namespace], int]:
    """The function of a command, ``MODULE.FUNCTION``; its module is imported now, and no other command's."""
    from importlib import import_module

    module, function = name.split(".")
    run: Callable[[Namespace], int] = getattr(import_module(f"mcphost.cli.commands.{module}"), function)
    return run


def _end(code: int) -> None:
    """End the process, but leave its memory to the system: to free all modules takes a twentieth of a call.

    Returns where a standard stream cannot be written any more, which the interpreter reports in its own way.
    """
    import atexit  # late: a tap does without
    import threading
    from contextlib import suppress

    with suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are not daemons
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


def _disable_pydantic_plugins() -> None:
    """Let no plugin run in our validation, and none be searched for.

    Pydantic imports `importlib.metadata` for the search even where plugins are off, which is 3 % of a short command.
    """
    from types import ModuleType  # late: a tap does without

    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    loader = ModuleType("pydantic.plugin._loader")
    loader.get_plugins = tuple  # type: ignore[attr-defined]
    sys.modules.setdefault(loader.__name__, loader)


def _open_streams() -> None:
    """Point closed standard streams at the null device, so that no file opened later takes their descriptors."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _explain(error: BaseException) -> int:
    from mcphost.cli.output import ErrorReport, Exit, Signalled, exit_for, report, reports_on
    from mcphost.errors import McphostError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McphostError):
        for each in reports_on(error):
            report(each)
        return exit_for(error)
    if isinstance(error, Signalled):
        return 128 + error.number
    # Where and what kind, but not its text and no locals: they may hold a secret.
    text = f"something in mcphost went wrong: {type(error).__name__} at {_place(error)}; please report this"
    report(ErrorReport("internal", text, Exit.INTERNAL, *_saved(error)))
    return Exit.INTERNAL


def _saved(error: BaseException) -> tuple[str, dict[str, str]]:
    """Save the traceback; where it is, as advice and as members for ``--json``."""
    from mcphost.cli.run import save_crash

    path = save_crash(error)
    if path is None:
        return "", {}
    return f"the traceback, without values, is in {path}", {"file": str(path)}


def _place(error: BaseException) -> str:
    """The innermost line of mcphost in the traceback."""
    own, place = os.path.dirname(os.path.dirname(__file__)), "an unknown place"
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(own):
            place = f"mcphost{file.removeprefix(own)}:{step.tb_lineno}"
        step = step.tb_next
    return place
