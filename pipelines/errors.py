"""What can go wrong by a user's hand: one message, one exit code, never a traceback.

Every message names the field or file (with its line), what was expected, what came, and the way out.
"""

from __future__ import annotations


class WholebatchError(Exception):
    """A fault the user can mend; the command line prints it and exits with `exit_code`."""

    exit_code = 1


class UsageError(WholebatchError):
    """A wrong command, option or configuration: nothing was started."""

    exit_code = 2


class DataError(WholebatchError):
    """Data that can't be used as it is, or a result that is not good enough."""


class WeightsError(WholebatchError):
    """Weights that can't be found, read or matched to the network."""


class NonFiniteError(WholebatchError):
    """A loss or gradient that is not finite in full precision; names the images."""


class OutOfMemoryError(WholebatchError):
    """An allocation failed again after everything that could be given back was; names what, its shape, the way out."""


class ReplayMismatchError(WholebatchError):
    """The two passes of `replay` saw different statistics, so the gradient would be wrong."""


class Interrupted(WholebatchError):
    """The run was asked to stop and has saved what it had; the exit code is the shell's for the signal."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number
