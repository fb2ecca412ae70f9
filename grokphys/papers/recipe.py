"""Recipes: functions that make an item of a paper, each with the rules that judge its result.

A recipe is a function of a `Run`, which holds the setting, that returns a `Result` of tables and figures. The
decorator `@recipe` registers the function with its rules, which are thus written before any run. A recipe
prints, writes and judges nothing: `grokphys.papers.run` does so.

Examples
--------
>>> import numpy as np
>>> from grokphys.papers import measures
>>> from grokphys.papers.recipe import Number, Result, recipe
>>> @recipe(
...     "coin",
...     item="a coin",
...     quick=10,
...     paper_setting=10_000,
...     cost="a second",
...     source="folklore",
...     rules=(Number("heads", "0.5", measures.share("throws", "head"), margin=0.02),),
...     registry={},
... )
... def coin(run):
...     'A fair coin shows heads in half of its throws.'
...     heads = np.random.default_rng(run.seed(0)).integers(0, 2, run.setting)
...     return Result({"throws": {"head": heads}})
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval
from grokphys.papers.counters import Chance
from grokphys.papers.evidence import Measure, Tables
from grokphys.papers.pieces import Piece, kept, piece_digits
from physics.checks import choice
from physics.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget = Literal["quick", "paper"]
Paper = Literal["Musat", "Liu", "Ding", "He", "beyond"]
Draw = Callable[..., Any]
"""Function of the setting of a run and its tables that returns figures by name, or that fills panels."""


class Setting(SimpleNamespace):
    """Setting of a recipe as names with values, such as ``Setting(tokens=59, networks=20)``."""

    def __repr__(self) -> str:
        """Return names and values without comments: pieces are found by the digest of this text."""
        values = (f"{name}={repr(value).partition('  #')[0]}" for name, value in vars(self).items())
        return f"Setting({', '.join(values)})"


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """What numbers and statements have in common; see `Statement`."""

    source: str = ""
    independent: str = ""
    fitted: str = ""
    digits: int = 2
    note: str = ""
    family: str = ""
    fidelity: str = ""
    undecidable: str = ""
    possible: tuple[float, float] = (-np.inf, np.inf)


@dataclass(frozen=True)
class Number(_Terms):
    """The rule for a number that a paper prints, with which our number is compared.

    Attributes
    ----------
    name : str
        Name of the number.
    printed : str
        The digits of the number as the paper prints them, such as ``"35.5"``, which determine the rounding.
    measure : callable
        Function of the tables and a confidence level that returns our number with its interval.
    margin : float
        Largest half-width of our interval, in the unit of the number, with which the numbers can agree.
    interval : tuple of float, optional
        95 % interval of the printed number, if the paper has one or a count of successes implies one.
    counted : bool, default False
        Whether the printed number is a count, which is not rounded.
    source, independent, fitted, digits, note, family, fidelity, undecidable, possible
        As in `Statement`.
    """

    name: str
    printed: str
    measure: Measure
    margin: float
    interval: tuple[float, float] | None = None
    counted: bool = False

    @property
    def value(self) -> float:
        """The printed number as a float."""
        return float(self.printed)

    @property
    def rounding(self) -> float:
        """Largest error of rounding, half a unit of the last printed digit; 0 for a count."""
        return 0.0 if self.counted else float(0.5 * 10.0 ** -len(self.printed.partition(".")[2]))

    @property
    def quoted(self) -> str:
        """The printed number with its interval, such as "0.50 [0.40, 0.60]"."""
        decimals = len(self.printed.partition(".")[2])
        sides = ", ".join(f"{side:.{decimals}f}" for side in self.interval or ())
        return f"{self.printed} [{sides}]" if sides else self.printed


@dataclass(frozen=True)
class Statement(_Terms):
    """The rule for a statement of a paper: an effect, and how large it must be to agree with the statement.

    The effect agrees if its whole interval lies between `least` and `most`, and disagrees if the whole
    interval lies below or above. Otherwise the claim is undecided. Statements of equality have both bounds.

    Attributes
    ----------
    name : str
        Name of the statement, in a few words.
    quote : str
        The statement in the words of the paper.
    effect : str
        The measured effect in words, with its unit.
    measure : callable
        Function of the tables and a confidence level that returns the effect with its interval.
    chance : Chance
        Model of data in which the statement is false, such as shuffled columns: a function of tables and a
        random generator that returns tables, of which at most 5 % may agree.
    least, most : float, default -inf and inf
        The smallest and the largest effect that agrees with the statement; at least one must be finite.
    source : str
        Place of the statement in the paper; by default that of the recipe.
    independent : str
        Unit that was drawn independently and that the interval resamples, such as "embedding"; by default
        that of the recipe.
    fitted : str
        Settings that were chosen to match the number or on the same data, so that agreement is no evidence;
        by default those of the recipe.
    digits : int, default 2
        Number of decimals of our number that are shown.
    note : str, default ""
        What was corrected in the measurement, or made clearer in words, after the run; the pages show it.
    family : str, default ""
        Title of the row in which the pages show this rule, with all others of the recipe that have the same.
        By default the row is that of the recipe.
    fidelity : str, default that of the recipe
        Whether the networks are trained at the setting of the paper: "paper's", "nearest" or "other data", of
        which the last has no verdict. What is different follows a colon. Ours, beyond the papers, have none.
    undecidable : str, default ""
        Why no number of runs can decide the claim, if it is undecided.
    possible : tuple of float, default (-np.inf, np.inf)
        Smallest and largest possible value, at which a shown interval ends; see also `measured`.

    Raises
    ------
    InputError
        If `least` is not below `most`, or neither is finite.
    """

    name: str
    quote: str
    effect: str
    measure: Measure
    chance: Chance
    least: float = -np.inf
    most: float = np.inf

    def __post_init__(self) -> None:
        if not self.least < self.most or not np.isfinite([self.least, self.most]).any():
            raise InputError(
                f"least must be below most, and one of them finite, got {self.least}, {self.most}"
            )


Rule = Number | Statement


@dataclass(frozen=True)
class Result:
    """The result of a recipe.

    Attributes
    ----------
    tables : mapping of str to mapping of str to array_like
        Columns by name, for each table by name; all columns of a table have the same length.
    figures : mapping of str to Figure
        Figures by name; the gallery shows all of them.
    claims : tuple of Claim
        Verdicts, which the runner adds.
    """

    tables: Mapping[str, Mapping[str, Any]]
    figures: "Mapping[str, Figure]" = field(default_factory=dict)
    claims: tuple["Claim", ...] = ()

    def columns(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return the tables with arrays as columns; raise an `InputError` if a table's differ in length."""
        arrays = {}
        for name, table in self.tables.items():
            arrays[name] = {column: np.asarray(values) for column, values in table.items()}
            lengths = {column: len(values) for column, values in arrays[name].items()}
            if len(set(lengths.values())) > 1:
                raise InputError(f"the columns of the table {name!r} must be equally long, got {lengths}")
        return arrays


Word = Literal["agrees", "disagrees", "undecided", "undecidable", "other data"]


@dataclass(frozen=True)
class Claim:
    """A rule applied to a result: our number or effect `found`, and the `verdict`.

    The interval of `found` has the level at which the claim was decided or left open, or 95 % if it is a
    number that agrees.
    """

    rule: Rule
    found: Interval
    verdict: Word


@dataclass(frozen=True)
class Run:
    """The argument of a recipe.

    Attributes
    ----------
    setting : object
        Setting of the recipe for the requested budget.
    budget : {"quick", "paper"}
        Whether this is a smoke test at a toy setting, or a run at the setting of the paper.
    store : Path, optional
        Directory in which `keep` stores pieces, from which an interrupted run continues; None for none.
    name : str, default ""
        Name of the recipe.
    shift : int, default 0
        Number that `seed` adds to every seed.
    seeds : set of int
        Seeds that the run has used.
    pieces : dict of Path to Piece
        How each of the pieces was made that `keep` has returned, by its file.
    """

    setting: Any
    budget: Budget
    store: Path | None = None
    name: str = ""
    shift: int = 0
    seeds: set[int] = field(default_factory=set, compare=False)
    pieces: dict[Path, Piece] = field(default_factory=dict, compare=False)

    def seed(self, number: int) -> int:
        """Return the seed `number` of the recipe, or that of a run with other seeds, and note its use."""
        self.seeds.add(number + self.shift)
        return number + self.shift

    def keep(self, name: str, make: Callable[[], Mapping[str, Any]], family: str = "") -> dict[str, Any]:
        """Return arrays by name, which the function `make` computes or an interrupted run has stored.

        The `name` distinguishes them from others of the recipe, or from others of a `family` of recipes of
        one setting that share them. Whatever they depend on must be in the setting, or in the code of `make`.
        A `FileFormatError` says that stored arrays cannot be read.
        """
        folder = self.folder(make, family)
        if folder is None:
            return {key: np.asarray(value) for key, value in make().items()}
        if not self.pieces:
            print(f"  pieces in {folder}", flush=True)
        arrays, piece = kept(path := folder / f"{name}.npz", make, self.seeds)
        self.pieces.setdefault(path, piece)
        return arrays

    def folder(self, make: Callable[..., Any], family: str = "") -> Path | None:
        """Return the folder in which `keep` stores what a function computes, or None if nothing is stored."""
        digits = piece_digits(self.setting, make, self.shift) if self.store else ""
        return self.store and self.store / (family or self.name) / digits


@dataclass(frozen=True)
class Recipe:
    """A recipe as it is registered; `recipe` explains the attributes that are its arguments.

    Attributes
    ----------
    settings : mapping of str to object
        Settings for the budgets "quick" and "paper".
    make : callable
        Function of a `Run` that returns a `Result`, with its figures if there is no `draw`.
    name, paper, item, shows, cost, rules, draw, withdrawn, looks
        As in `recipe`.
    """

    name: str
    paper: Paper
    item: str
    shows: str
    settings: Mapping[Budget, Any]
    cost: str
    rules: tuple[Rule, ...]
    make: Callable[[Run], Result]
    draw: Draw | None = None
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    looks: int = 1


PACKAGES: Mapping[str, Paper] = {"musat": "Musat", "liu": "Liu", "ding": "Ding", "he": "He"}
FIDELITY = ("paper's", "nearest", "other data")
RECIPES: dict[str, Recipe] = {}
"""Recipes by name, in the order of their registration; `run.recipes` imports and sorts all of them."""


def recipe(
    name: str, *, item: str, quick: Any, paper_setting: Any, cost: str, rules: Sequence[Rule] = (),
    draw: Draw | None = None, panels: tuple[Any, ...] = (), shows: str = "", paper: Paper | None = None,
    withdrawn: Mapping[str, str] = MappingProxyType({}), looks: int = 1,
    registry: MutableMapping[str, Recipe] = RECIPES, **terms: str,
) -> Callable[[Callable[[Run], Result]], Callable[[Run], Result]]:  # fmt: skip
    """Return a decorator that registers a function as the recipe of an item of a paper.

    Parameters
    ----------
    name : str
        Name of the recipe for `grokphys reproduce`, such as "ding-5".
    item : str
        Item of the paper, such as "Figure 5" or "Table 2".
    quick : object
        Setting of a smoke test, which takes seconds and gives pictures but no verdicts; as a dict, what it
        changes of the paper's `Setting`.
    paper_setting : object
        Setting of the paper, or the full setting of an item beyond the papers.
    cost : str
        Duration of a run at the paper's setting on two cores, in words.
    rules : sequence of Number or Statement
        Rules that judge the result at the paper's setting; by default none.
    draw : callable, optional
        Function of the setting and the tables that returns the figures by name. The decorated function then
        returns tables alone, and the figures of a stored result can be drawn again without another run. By
        default the decorated function draws its figures itself.
    panels : tuple of float, optional
        Width and height in inches of a figure with the name of the recipe, and the numbers of rows and
        columns of its panels. They are further arguments of `draw`, row by row, which then draws into them.
    shows : str, optional
        What the item shows, by default the docstring of the decorated function up to its notes. The first
        sentence must stand alone, as lists have no other.
    paper : {"Musat", "Liu", "Ding", "He", "beyond"}, optional
        Paper to which the item belongs, by default that after which the package of the recipe is named.
    withdrawn : mapping of str to str, optional
        Names of rules that turned out to be no test after the run, and why.
    looks : int, default 1
        Number of times that claims are judged, each with more networks than before; see `judge`.
    registry : dict, optional
        Mapping to which the recipe is added; by default `RECIPES`.
    **terms : str
        The attributes `source`, `independent`, `fitted` and `fidelity` of the rules that do not state their
        own; by default `independent` is "network", and `fidelity` "paper's".

    Returns
    -------
    callable
        Decorator that returns the function unchanged.

    Raises
    ------
    InputError
        If the registry has a recipe of this name already, if two rules have the same name, or if `fidelity`
        begins with another word.
    """

    def register(make: Callable[[Run], Result]) -> Callable[[Run], Result]:
        names = [rule.name for rule in rules]
        if name in registry or len(set(names)) < len(names):
            raise InputError(
                f"recipes, and rules of a recipe, must have different names, got {name}: {names}"
            )

        def pictures(setting: Any, tables: Tables) -> "Mapping[str, Figure]":
            from grokphys.papers import charts  # Matplotlib, for which the command line need not wait

            assert draw is not None
            with charts.panels(*panels) as (figure, axes):
                draw(setting, tables, *np.atleast_1d(axes))
            return {name: figure}

        of = paper or PACKAGES.get(make.__module__.rpartition(".")[0].rpartition(".")[2], "beyond")
        common: dict[str, Any] = {"independent": "network", "fidelity": "" if of == "beyond" else FIDELITY[0]}
        common |= {key: text for key, text in terms.items() if text}
        completed = tuple(
            replace(rule, **{key: getattr(rule, key) or text for key, text in common.items()})
            for rule in rules
        )
        for rule in completed:
            if rule.fidelity:
                choice("fidelity", rule.fidelity.partition(":")[0], FIDELITY)
        small = Setting(**vars(paper_setting) | quick) if isinstance(quick, dict) else quick
        caption = " ".join((shows or (make.__doc__ or "").partition("Notes\n")[0]).split())
        registry[name] = Recipe(
            name, of, item, caption, {"quick": small, "paper": paper_setting}, cost, completed, make,
            pictures if panels else draw, withdrawn, looks,
        )  # fmt: skip
        return make

    return register
