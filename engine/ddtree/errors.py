"""The one exception that means "the user can fix this": its text is the whole message."""


class UserError(Exception):
    """Wrong input or environment. The message names the thing, its value and the next step; the CLI exits with 2."""
