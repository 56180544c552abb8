"""The root of all errors whose message alone tells a user what is wrong and what to do."""


class AttrcheckError(Exception):
    """Shown without a traceback."""
