"""Errors of collectors: what was tried, what was found, what to do."""


class CollectorError(Exception):
    """A collector cannot work (unknown device, no rights, unreachable)."""


class OptionError(CollectorError):
    """An option of a ``collect`` entry is wrong; farm.yaml must be corrected.

    Args:
        option: the option's name in farm.yaml.
        said: the value that was found, and what is allowed.
        where: the place of the option, for a message without a line.
    """

    def __init__(self, option: str, text: str, where: str = "") -> None:
        super().__init__(": ".join(filter(None, (where, option, text))))
        self.option = option
        self.said = text
