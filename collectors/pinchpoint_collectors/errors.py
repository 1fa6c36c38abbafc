"""Defines the errors of collectors: what was tried, what was found, and the remedy."""


class CollectorError(Exception):
    """A collector cannot work (unknown device, no rights, unreachable)."""


class OptionError(CollectorError):
    """An option of a ``collect`` entry is wrong, and farm.yaml must be corrected.

    Args:
        option: name of the option in farm.yaml.
        said: value that was found, and what is allowed.
        where: place of the option, for a message without a line.
    """

    def __init__(self, option: str, text: str, where: str = "") -> None:
        super().__init__(": ".join(filter(None, (where, option, text))))
        self.option = option
        self.said = text
