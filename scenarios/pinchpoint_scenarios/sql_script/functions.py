"""Defines the functions of pgbench's expressions (PostgreSQL manual, pgbench, "Built-In Functions")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .scope import EvaluationError, ScriptScope, Value, as_float, as_int, checked

_WORD = 2**64 - 1
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Constants of the 64-bit FNV-1a hash (Fowler, Noll, Vo)."""
_MURMUR = 0xC6A4A7935BD1E995
"""Multiplier of MurmurHash2, 64-bit version A (Appleby)."""
_LEAST_GAUSSIAN = 2.0
ZIPFIAN_EXPONENTS = (1.001, 1000.0)
"""Range of exponents that pgbench allows."""
_ROUNDS = 4

Arguments = Sequence[Value]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of pgbench.

    Attributes:
        call: calculates the function for non-null arguments. least, most: smallest and largest number of
            arguments; ``most`` is None without a limit.
    """

    call: Callable[[ScriptScope, Arguments], Value]
    least: int
    most: int | None


def _signed(word: int) -> int:
    word &= _WORD
    return word - 2**64 if word >> 63 else word


def _random(scope: ScriptScope, arguments: Arguments) -> int:
    low, count = _range("random", arguments)
    return low + int(scope.chance.random() * count)


def _range(name: str, arguments: Arguments) -> tuple[int, int]:
    low, high = as_int(arguments[0]), as_int(arguments[1])
    if low > high:
        raise EvaluationError(f"{name}({low}, {high}): the range is empty; the lower bound comes first")
    return low, high - low + 1


def _exponential(scope: ScriptScope, arguments: Arguments) -> int:
    low, count = _range("random_exponential", arguments)
    decay = as_float(arguments[2])
    if not decay > 0:
        raise EvaluationError(f"random_exponential: its parameter is {decay:g}; allowed: above 0")
    # The inverse of a distribution function that is truncated at the ends of the range.
    cut = math.exp(-decay)
    share = -math.log(cut + (1.0 - cut) * (1.0 - scope.chance.random())) / decay
    return low + min(int(share * count), count - 1)


def _gaussian(scope: ScriptScope, arguments: Arguments) -> int:
    low, count = _range("random_gaussian", arguments)
    width = as_float(arguments[2])
    if not width >= _LEAST_GAUSSIAN:
        raise EvaluationError(
            f"random_gaussian: its parameter is {width:g}; allowed: {_LEAST_GAUSSIAN:g} or more"
        )
    deviations = math.inf
    while not -width <= deviations < width:
        deviations = normal(scope)
    return low + min(int((deviations + width) / (2 * width) * count), count - 1)


def normal(scope: ScriptScope) -> float:
    """Return a normally distributed number with mean 0 and deviation 1 (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - scope.chance.random()))
    return radius * math.sin(2.0 * math.pi * scope.chance.random())


def _zipfian(scope: ScriptScope, arguments: Arguments) -> int:
    low, count = _range("random_zipfian", arguments)
    exponent = as_float(arguments[2])
    if not ZIPFIAN_EXPONENTS[0] <= exponent <= ZIPFIAN_EXPONENTS[1]:
        least, most = ZIPFIAN_EXPONENTS
        raise EvaluationError(
            f"random_zipfian: its parameter is {exponent:g}; allowed: {least:g} to {most:g}"
        )
    return low + zipfian(scope, count, exponent) - 1


def zipfian(scope: ScriptScope, count: int, exponent: float) -> int:
    """Return a rank from 1 to ``count``, k in proportion to 1/k^exponent, with ``exponent`` above 1.

    The method is rejection (Devroye, Non-Uniform Random Variate Generation, 1986, chapter X.6).
    """
    if count == 1:
        return 1
    base = math.pow(2.0, exponent - 1.0)
    while True:
        drawn, judged = 1.0 - scope.chance.random(), scope.chance.random()
        rank = math.floor(min(math.pow(drawn, -1.0 / (exponent - 1.0)), count + 1.0))
        weight = math.pow(1.0 + 1.0 / rank, exponent - 1.0)
        if rank <= count and judged * rank * (weight - 1.0) / (base - 1.0) <= weight / base:
            return rank


def _fnv1a(value: int, seed: int) -> int:
    result = (_FNV_OFFSET ^ seed) & _WORD
    for octet in (value & _WORD).to_bytes(8, "little"):
        result = ((result ^ octet) * _FNV_PRIME) & _WORD
    return _signed(result)


def _murmur2(value: int, seed: int) -> int:
    result = (seed ^ (8 * _MURMUR)) & _WORD  # 8: number of hashed bytes
    mixed = (value * _MURMUR) & _WORD
    mixed = ((mixed ^ (mixed >> 47)) * _MURMUR) & _WORD
    result = ((result ^ mixed) * _MURMUR) & _WORD
    result = ((result ^ (result >> 47)) * _MURMUR) & _WORD
    return _signed(result ^ (result >> 47))


def _hash(of: Callable[[int, int], int]) -> Function:
    def call(scope: ScriptScope, arguments: Arguments) -> int:
        return of(as_int(arguments[0]), _seed(scope, arguments, 1))

    return Function(call, 1, 2)


def _seed(scope: ScriptScope, arguments: Arguments, at: int) -> int:
    return as_int(arguments[at] if len(arguments) > at else scope.value("default_seed")) & _WORD


def _permute(scope: ScriptScope, arguments: Arguments) -> int:
    """Return a permutation of 0 to size - 1. It differs from pgbench's for the same seed."""
    value, size = as_int(arguments[0]), as_int(arguments[1])
    if size <= 0:
        raise EvaluationError(f"permute: its size is {size}; allowed: above 0")
    place, seed = value % size, _seed(scope, arguments, 2)
    bits = max(1, (size - 1).bit_length())
    place = _shuffled(place, bits, seed)
    while place >= size:  # each step permutes 2^bits places, and repeating it returns into the range
        place = _shuffled(place, bits, seed)
    return place


def _shuffled(place: int, bits: int, seed: int) -> int:
    """Return a permutation of the numbers with a number of bits. Each step is reversible."""
    mask = (1 << bits) - 1
    for number in range(_ROUNDS):
        key = _murmur2(number, seed) & _WORD
        place = (place * (key | 1) + (key >> 32)) & mask
        place ^= place >> (bits // 2 + 1)
    return place


def _either(of: Callable[..., int | float]) -> Function:
    """Return a function of whole numbers if all arguments are whole, else of doubles."""

    def call(_: ScriptScope, arguments: Arguments) -> Value:
        if any(isinstance(each, float) for each in arguments):
            return of(*map(as_float, arguments))
        return checked(int(of(*map(as_int, arguments))))

    return Function(call, 1, None)


def _double(of: Callable[..., float], count: int) -> Function:
    def call(_: ScriptScope, arguments: Arguments) -> float:
        try:
            return of(*map(as_float, arguments))
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            shown = ", ".join(f"{each:g}" for each in map(as_float, arguments))
            raise EvaluationError(f"no number comes of the arguments {shown}") from error

    return Function(call, count, count)


def _modulo(_: ScriptScope, arguments: Arguments) -> int:
    return remainder(as_int(arguments[0]), as_int(arguments[1]))


def remainder(left: int, right: int) -> int:
    """Return the remainder of a division, with the sign of ``left``."""
    if right == 0:
        raise EvaluationError("division by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _absolute(of: Function) -> Function:
    return Function(of.call, 1, 1)


FUNCTIONS = {
    "abs": _absolute(_either(abs)),
    "debug": Function(lambda _, arguments: arguments[0], 1, 1),
    "double": _double(lambda number: number, 1),
    "exp": _double(math.exp, 1),
    "greatest": _either(lambda *numbers: max(numbers)),
    "hash": _hash(_murmur2),
    "hash_fnv1a": _hash(_fnv1a),
    "hash_murmur2": _hash(_murmur2),
    "int": Function(lambda _, arguments: as_int(arguments[0]), 1, 1),
    "least": _either(lambda *numbers: min(numbers)),
    "ln": _double(math.log, 1),
    "mod": Function(_modulo, 2, 2),
    "permute": Function(_permute, 2, 3),
    "pi": _double(lambda: math.pi, 0),
    "pow": _double(math.pow, 2),
    "power": _double(math.pow, 2),
    "random": Function(_random, 2, 2),
    "random_exponential": Function(_exponential, 3, 3),
    "random_gaussian": Function(_gaussian, 3, 3),
    "random_zipfian": Function(_zipfian, 3, 3),
    "sqrt": _double(math.sqrt, 1),
}
"""Name -> function. ``debug`` returns its argument and prints nothing."""
