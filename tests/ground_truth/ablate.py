"""``python -m ground_truth.ablate FOLDER``: switch off each rule of the analysis in turn.

A rule is a condition (an ``if``, a term of an ``and`` or ``or``, a filter), a yielded value, or a whole
function, whose result becomes empty. The modules are loaded with every rule numbered. Each rule is judged on
kept runs (``kept.py``) and labelled recordings (``foreign_truth``) on which the rule changed its own value,
until three answers are worse. ``FOLDER/ablations-1.jsonl`` gets a line per rule, the longest rule first. All
rules take hours; ``--shard 1/2`` takes every second one.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "pinchpoint.analysis"
OWN = Path(__file__).parents[1] / "foreign_truth" / "own"
ENOUGH = 3
"""Number of worse answers that shows that a rule is needed."""
FOREIGN = "foreign"
MOST = {"real": 16, FOREIGN: 16, "synthetic": 6}
"""Maximum number of runs per set on which a rule is judged, spread evenly over the runs on which it fired."""
FOREIGN_WORTH = {"right": 1, "declined": 0, "named": -1, "wrong": -2, "failed": -4}
AS_IS = ("declared", "as is")
RESAMPLES = 5
"""Number of resamples, instead of two hundred: both verdicts use the same resamples."""
EMPTY = {"str": "", "list": [], "dict": {}, "Mapping": {}, "bool": False, "frozenset": (), "set": ()}


@dataclass(slots=True)
class Rule:
    """One rule that can be switched off: its place, and the runs on which it fired."""

    place: str
    what: str
    text: str
    lines: int
    fired: set[int] = field(default_factory=set)


class Switches:
    """The number of the rule that is off, and of the run that is judged."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.off = -1
        self.run = -1

    def value(self, number: int, value: Any, off: bool) -> Any:
        """Return a condition's value, or the value that switches the rule off."""
        if self.run < 0:
            return off if number == self.off else value
        if bool(value) != off:
            self.rules[number].fired.add(self.run)
        return value

    def is_off(self, number: int) -> bool:
        """Return True if the rule of this number is switched off."""
        if self.run >= 0:
            self.rules[number].fired.add(self.run)
        return number == self.off


SWITCHES = Switches()


class Numbered(ast.NodeTransformer):
    """Puts a switch around every rule of a module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def _new(self, node: ast.AST, what: str) -> ast.Constant:
        first, last = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        text = ast.unparse(node).split("\n")[0][:160]
        SWITCHES.rules.append(Rule(f"{self._module}:{first}", what, text, last - first + 1))
        return ast.Constant(len(SWITCHES.rules) - 1)

    def _switched(self, value: ast.expr, off: bool, what: str, of: ast.AST | None = None) -> ast.expr:
        number = self._new(of or value, what)
        inner = self.visit(value)
        call = ast.Call(ast.Name("__switch__", ast.Load()), [number, inner, ast.Constant(off)], [])
        return ast.copy_location(call, value)

    # ast.NodeVisitor calls these names.
    def visit_If(self, node: ast.If) -> Any:
        node.test = self._switched(node.test, off=False, what="if", of=node)
        node.body = [self.visit(each) for each in node.body]
        node.orelse = [self.visit(each) for each in node.orelse]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test = self._switched(node.test, off=False, what="else only")
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        both = isinstance(node.op, ast.And)
        node.values = [self._switched(each, both, "and" if both else "or") for each in node.values]
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.target, node.iter = self.visit(node.target), self.visit(node.iter)
        node.ifs = [self._switched(each, off=True, what="filter") for each in node.ifs]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            return self.generic_visit(node)
        test = ast.Call(ast.Name("__off__", ast.Load()), [self._new(node, "yield")], [])
        self.generic_visit(node)
        return ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), test), [node], []), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        answers = list(_nothing(node))
        first = 1 if ast.get_docstring(node) else 0
        before: list[ast.stmt] = []
        for answer, words in answers:
            test = ast.Call(ast.Name("__off__", ast.Load()), [self._new(node, f"function: {words}")], [])
            before.append(ast.copy_location(ast.If(test, [ast.Return(answer)], []), node))
        node.body = [*node.body[:first], *before, *(self.visit(each) for each in node.body[first:])]
        return node


def _nothing(node: ast.FunctionDef) -> Iterator[tuple[ast.expr | None, str]]:
    """Yield the empty results that can replace a function's result: (expression, text)."""
    if node.returns is None or any("overload" in ast.unparse(each) for each in node.decorator_list):
        return
    told = ast.unparse(node.returns)
    name = told.split("[")[0]
    if "None" in told.split(" | "):
        yield ast.Constant(None), "None"
    elif name in ("Iterator", "Iterable"):
        inside = [each for part in node.body for each in _own(part)]
        yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in inside)
        yield (None if yields else ast.parse("iter(())", mode="eval").body), "nothing"
    elif name == "tuple" and told.endswith("...]"):
        yield ast.Tuple([], ast.Load()), "()"
    elif name == "bool":
        yield ast.Constant(False), "False"
        yield ast.Constant(True), "True"
    elif name in EMPTY:
        yield ast.parse(repr(EMPTY[name]), mode="eval").body, repr(EMPTY[name])


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree without those of nested functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from _own(child)


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the modules of the analysis with their switches."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = self._root / f"{name.removeprefix(PACKAGE).replace('.', '/').strip('/')}.py"
        if not name.startswith(f"{PACKAGE}.") or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        file = Path(module.__file__ or "")
        place = str(file.relative_to(self._root))
        tree = Numbered(place).visit(ast.parse(file.read_text(encoding="utf-8")))
        module.__dict__.update(__switch__=SWITCHES.value, __off__=SWITCHES.is_off)
        exec(compile(ast.fix_missing_locations(tree), file, "exec"), module.__dict__)  # noqa: S102 -- our own


@dataclass(frozen=True, slots=True)
class Answered:
    """The judgement of a run: its score, what the verdict names, and the whole verdict."""

    worth: int
    named: str
    whole: str


class Judge:
    """Judges kept runs repeatedly."""

    def __init__(self, folders: Sequence[Path], imported: Path, every: int) -> None:
        from foreign_truth import run as foreign  # noqa: PLC0415 -- likewise
        from foreign_truth.labels import read_labels  # noqa: PLC0415 -- likewise
        from foreign_truth.score import score as foreign_score  # noqa: PLC0415 -- likewise
        from ground_truth import kept  # noqa: PLC0415 -- likewise

        from pinchpoint.analysis import analyse, confidence  # noqa: PLC0415 -- loaded with its switches
        from pinchpoint.store.read import open_run  # noqa: PLC0415 -- likewise
        from pinchpoint.store.samples import table  # noqa: PLC0415 -- likewise

        confidence.RESAMPLES = RESAMPLES
        self._kept, self._analyse, self._open_run, self._table = kept, analyse, open_run, table
        self.cases: list[tuple[str, str, str, Any, Any]] = [
            (set_, name, variant, expected, run)
            for set_ in (kept.REAL, kept.SYNTHETIC)
            for name, expected in kept.truths(set_).items()
            for variant, run in self._variants(set_, name)
        ]
        self._foreign_score = foreign_score
        self.cases += [
            (FOREIGN, f"{label.set}/{label.case}", variant, label, replace(run, samples=table(run.samples)))
            for folder in folders
            for label in read_labels(folder)
            for variant, run in foreign.variants_of(label, imported / folder.name / label.case)
        ]
        self.cases = [one for at, one in enumerate(self.cases) if one[2] in AS_IS or at % every == 0]

    def _variants(self, set_: str, name: str) -> Any:
        run = self._open_run(self._kept.RUNS / set_ / name)
        if set_ == self._kept.REAL:
            return self._kept.variants(run)
        return [(self._kept.AS_IS, replace(run, samples=self._table(run.samples)))]

    def answer(self, number: int) -> Answered:
        """Analyse one run and return the judgement."""
        set_, name, variant, expected, run = self.cases[number]
        try:
            verdict = self._analyse(run)
            whole = json.dumps(verdict.to_json(), sort_keys=True)
            if set_ == FOREIGN:
                held = self._foreign_score(expected, variant, verdict)
                return Answered(2 * FOREIGN_WORTH[held.score] + held.candidate, held.said, whole)
            one = self._kept.score(set_, name, variant, expected, verdict)
        except Exception as error:  # noqa: BLE001 -- a rule without which nothing works
            return Answered(-9, f"fails: {type(error).__name__}", "")
        sure = {"high": 3, "medium": 2}.get(one.confidence or "", 1)
        worth = {"right": 2, "declined": 0, "wrong": -sure - 1}[one.score]
        worth += one.kind if one.score == "right" else one.candidate
        return Answered(worth, f"{one.said} ({one.confidence})", whole)

    def title(self, number: int) -> str:
        """Return the set, run and variant of a case."""
        return "/".join(self.cases[number][:3])


def spread(numbers: Sequence[int], most: int) -> list[int]:
    """Return at most ``most`` of the numbers, evenly spread."""
    return (
        [numbers[round(at * len(numbers) / most)] for at in range(most)]
        if len(numbers) > most
        else [*numbers]
    )


def main() -> int:
    """Load the modules, judge all runs with every rule on, then without each rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without", nargs="*", default=[], help="modules that are left alone")
    parser.add_argument("--least-lines", type=int, default=1, help="leave shorter rules alone")
    parser.add_argument("--recordings", nargs="*", type=Path, default=[OWN], help="folders with a labels.csv")
    parser.add_argument("--every", type=int, default=1, help="of variants of the data only each third: 3")
    parser.add_argument("--shard", default="1/1", help="the first of two halves of the rules: 1/2")
    given = parser.parse_args()
    shard, shards = map(int, given.shard.split("/"))
    found = importlib.util.find_spec("pinchpoint")
    assert found is not None
    root = Path(next(iter(found.submodule_search_locations or ()))) / "analysis"
    sys.meta_path.insert(0, Loader(root))
    given.folder.mkdir(parents=True, exist_ok=True)
    judge = Judge(given.recordings, given.folder / f"recordings-{shard}", given.every)
    before = []
    for number in range(len(judge.cases)):
        SWITCHES.run = number
        before.append(judge.answer(number))
    SWITCHES.run = -1
    order = sorted(range(len(SWITCHES.rules)), key=lambda each: -SWITCHES.rules[each].lines)
    order = order[shard - 1 :: shards]
    print(f"{len(SWITCHES.rules)} rules, {len(judge.cases)} runs", flush=True)
    with (given.folder / f"ablations-{shard}.jsonl").open("w", encoding="utf-8") as file:
        for number in order:
            rule = SWITCHES.rules[number]
            if rule.place.split(":")[0] in given.without or rule.lines < given.least_lines:
                continue
            fired = {
                set_: [one for one in sorted(rule.fired) if judge.cases[one][0] == set_] for set_ in MOST
            }
            SWITCHES.off = number
            worse, better, named, words, asked = [], [], [], 0, 0
            for one in [each for set_ in MOST for each in spread(fired[set_], MOST[set_])]:
                now, asked = judge.answer(one), asked + 1
                if now.worth < before[one].worth:
                    worse.append(f"{judge.title(one)}: {before[one].named} -> {now.named}")
                elif now.worth > before[one].worth:
                    better.append(f"{judge.title(one)}: {before[one].named} -> {now.named}")
                elif now.named != before[one].named:
                    named.append(f"{judge.title(one)}: {before[one].named} -> {now.named}")
                words += now.whole != before[one].whole
                if len(worse) >= ENOUGH:
                    break
            SWITCHES.off = -1
            row = {"place": rule.place, "what": rule.what, "text": rule.text, "lines": rule.lines}
            row |= {"fired": {set_: len(ones) for set_, ones in fired.items()}, "asked": asked}
            row |= {"worse": worse, "better": better[:5], "named": named[:5], "words": words}
            file.write(json.dumps(row) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
