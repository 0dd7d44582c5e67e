"""Turns exceptions into errors that the user may see.

An unexpected exception becomes an error that names the place in the code, but not the exception's text, which may quote
anything. An error that quotes a server loses the secrets that the server may have quoted.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

from mcphost.errors import AuthorizationRequired, ConnectionLost, McphostError, RequestRefused, ServerError
from mcphost.redaction import masked_value

log = logging.getLogger(__name__)
"""Takes each unexpected exception as a record with its traceback."""


class InternalError(McphostError):
    """mcphost itself failed; trying the same again would fail again."""

    lasting = True


def internal_error(error: Exception) -> InternalError:
    """The error to show for ``error``, whose traceback goes to `log`."""
    log.debug("an unexpected exception", exc_info=error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return InternalError(
        f"mcphost failed here ({type(error).__name__}{place}); this is a bug in mcphost, please report it"
    )


def describe_failure(error: Exception) -> str:
    """The error's text if it is meant for the user, else that of an internal error."""
    return str(error if isinstance(error, McphostError) else internal_error(error))


def without_secrets(error: McphostError, mask: Callable[[str], str]) -> McphostError:
    """The same error, with secrets taken out of whatever it quotes."""
    error.args = tuple(mask(each) if isinstance(each, str) else each for each in error.args)
    if isinstance(error, ConnectionLost):
        error.stderr_tail = tuple(map(mask, error.stderr_tail))
    if isinstance(error, AuthorizationRequired):
        error.www_authenticate, error.reason = mask(error.www_authenticate), mask(error.reason)
    if isinstance(error, ServerError):
        error.message = mask(error.message)
        error.data = masked_value(error.data, mask)
    if isinstance(error, RequestRefused):
        error.sent = mask(error.sent)
    return error
