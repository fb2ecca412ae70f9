"""Recipes: functions that make an item of a paper, each with the rules that judge its result.

A recipe is a function of a `Run`, which holds the setting, that returns a `Result` of tables and figures. The
decorator `@recipe` registers the function with its rules, which are thus written before any run. A recipe
prints, writes and judges nothing: `grokphys.papers.run` does so.

Examples
--------
>>> import numpy as np
>>> from grokphys.papers.recipe import Number, Printed, Result, recipe
>>> from grokphys.papers.evidence import share
>>> @recipe(
...     "coin",
...     paper="beyond",
...     item="a coin",
...     shows="A fair coin shows heads in half of its throws.",
...     quick=10,
...     paper_setting=10_000,
...     cost="a second",
...     rules=(
...         Number(
...             "heads",
...             Printed("0.5", "folklore"),
...             lambda tables, level: share(tables["throws"]["head"], level),
...             margin=0.02,
...         ),
...     ),
...     registry={},
... )
... def coin(run):
...     heads = np.random.default_rng(0).integers(0, 2, run.setting)
...     return Result({"throws": {"head": heads}})
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.stats.intervals import Interval
from grokphys.papers.pieces import Piece, kept, piece_digits
from physics.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Budget = Literal["quick", "paper"]
Paper = Literal["Musat", "Liu", "Ding", "He", "beyond"]
Columns = Mapping[str, NDArray[Any]]
Tables = Mapping[str, Columns]
"""Tables by name; a table is a mapping of equally long columns of numbers, truth values or text."""
Measure = Callable[[Tables, float], Interval]
"""Function of the tables of a run and a confidence level that returns an estimate with its interval."""
Draw = Callable[[Any, Tables], "Mapping[str, Figure]"]
"""Function of the setting of a run and its tables that returns figures by name."""


@dataclass(frozen=True)
class Printed:
    """A number as a paper prints it.

    Attributes
    ----------
    text : str
        The digits of the number, such as ``"35.5"``, which determine the rounding.
    source : str
        Place of the number in the paper, such as "Table 2".
    interval : tuple of float, optional
        95 % interval of the number, if the paper prints one or a count of successes implies one.
    counted : bool, default False
        Whether the number is a count, which is not rounded.
    """

    text: str
    source: str
    interval: tuple[float, float] | None = None
    counted: bool = False

    @property
    def value(self) -> float:
        """The number as a float."""
        return float(self.text)

    @property
    def rounding(self) -> float:
        """Largest error of rounding, half a unit of the last printed digit; 0 for a count."""
        return 0.0 if self.counted else float(0.5 * 10.0 ** -len(self.text.partition(".")[2]))

    def __str__(self) -> str:
        decimals = len(self.text.partition(".")[2])
        sides = ", ".join(f"{side:.{decimals}f}" for side in self.interval or ())
        return f"{self.text} [{sides}]" if sides else self.text


@dataclass(frozen=True)
class Number:
    """The rule for a number that a paper prints, with which our number is compared.

    Attributes
    ----------
    name : str
        Name of the number.
    printed : Printed
        The number of the paper.
    measure : callable
        Function of the tables and a confidence level that returns our number with its interval.
    margin : float
        Largest half-width of our interval, in the unit of the number, with which the number can be covered.
    independent : str, default "network"
        Unit that was drawn independently and that the interval resamples, such as "network" or "embedding".
    fitted : str, default ""
        Settings that were chosen to match the number, so that agreement is no evidence; "" if none were.
    digits : int, default 2
        Number of decimals of our number that are shown.
    note : str, default ""
        What was corrected in the measurement, or made clearer in words, after the run; the pages show it.
    possible : tuple of float, default (-np.inf, np.inf)
        Smallest and largest possible value, at which a shown interval ends; see also `measured`.
    """

    name: str
    printed: Printed
    measure: Measure
    margin: float
    independent: str = "network"
    fitted: str = ""
    digits: int = 2
    note: str = ""
    possible: tuple[float, float] = (-np.inf, np.inf)


@dataclass(frozen=True)
class Statement:
    """The rule for a statement of a paper: an effect, and how large it must be for the statement to hold.

    The statement holds if the whole interval of the effect lies between `least` and `most`, and does not hold
    if the whole interval lies below or above. Otherwise the data are inconclusive. Statements of equality
    have both bounds.

    Attributes
    ----------
    name : str
        Name of the statement, in a few words.
    quote : str
        The statement in the words of the paper.
    source : str
        Place of the statement in the paper.
    effect : str
        The measured effect in words, with its unit.
    measure : callable
        Function of the tables and a confidence level that returns the effect with its interval.
    chance : callable or str
        Model of data for which the statement is not true: a function of tables and a random generator that
        returns shuffled tables, on which the statement may hold in at most 5 % of cases. If nothing can be
        shuffled, the reason.
    least, most : float, default -inf and inf
        The smallest and the largest effect with which the statement holds; at least one must be finite.
    independent, fitted, digits, note, possible
        As in `Number`; `fitted` names settings that were chosen on the same data.
    withdrawn : str, default ""
        Why the rule is no test, if that was found out after the run; it is then not judged.
    counter : callable, optional
        Model of data in which the statement is false, for a statement whose `chance` is a reason because
        nothing can be shuffled. As on shuffled tables, the statement may hold in at most 5 % of cases.

    Raises
    ------
    InputError
        If `least` is not below `most`, or neither is finite.
    """

    name: str
    quote: str
    source: str
    effect: str
    measure: Measure
    chance: "Callable[[Tables, np.random.Generator], Tables] | str"
    least: float = -np.inf
    most: float = np.inf
    independent: str = "network"
    fitted: str = ""
    digits: int = 2
    note: str = ""
    possible: tuple[float, float] = (-np.inf, np.inf)
    withdrawn: str = ""
    counter: "Callable[[Tables, np.random.Generator], Tables] | None" = None

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
        found = {
            name: {column: np.asarray(values) for column, values in table.items()}
            for name, table in self.tables.items()
        }
        for name, table in found.items():
            lengths = {column: len(values) for column, values in table.items()}
            if len(set(lengths.values())) > 1:
                raise InputError(f"the columns of the table {name!r} must be equally long, got {lengths}")
        return found


Word = Literal["covered", "not covered", "holds", "does not hold", "inconclusive", "withdrawn"]


@dataclass(frozen=True)
class Claim:
    """A rule applied to a result: our number or effect `found`, and the `verdict`.

    The interval of `found` has the level at which the claim was decided or left open, or 95 % if the
    verdict is "covered" or "withdrawn".
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
        Number that is added to every seed.
    pieces : dict of Path to Piece
        How each of the pieces was made that `keep` has returned, by its file.
    """

    setting: Any
    budget: Budget
    store: Path | None = None
    name: str = ""
    shift: int = 0
    pieces: dict[Path, Piece] = field(default_factory=dict, compare=False)

    def keep(self, name: str, make: Callable[[], Mapping[str, Any]], family: str = "") -> dict[str, Any]:
        """Return arrays by name, which the function `make` computes or an interrupted run has stored.

        The `name` distinguishes them from others of the recipe, or from others of a `family` of recipes of
        one setting that share them. Whatever they depend on must be in the setting, or in the module that
        defines `make`. A `FileFormatError` says that stored arrays cannot be read.
        """
        folder = self.folder(make, family)
        if folder is None:
            return {key: np.asarray(value) for key, value in make().items()}
        if not self.pieces:
            print(f"  pieces in {folder}", flush=True)
        arrays, piece = kept(path := folder / f"{name}.npz", make)
        self.pieces.setdefault(path, piece)
        return arrays

    def folder(self, make: Callable[..., Any], family: str = "") -> Path | None:
        """Return the folder in which `keep` stores what a function computes, or None if nothing is stored."""
        return self.store and self.store / (family or self.name) / piece_digits(
            self.setting, make, self.shift
        )


@dataclass(frozen=True)
class Recipe:
    """A recipe as it is registered; `recipe` explains the attributes that are its arguments.

    Attributes
    ----------
    settings : mapping of str to object
        Settings for the budgets "quick" and "paper".
    make : callable
        Function of a `Run` that returns a `Result`.
    name, paper, item, shows, cost, rules, draw
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

    @property
    def module(self) -> str:
        """Name of the module of the recipe, whose imports determine what the results depend on."""
        return self.make.__module__


RECIPES: dict[str, Recipe] = {}
"""Recipes by name, in the order of their registration; `catalogue.recipes` imports and sorts all of them."""


def recipe(
    name: str,
    *,
    paper: Paper,
    item: str,
    shows: str,
    quick: Any,
    paper_setting: Any,
    cost: str,
    rules: Sequence[Rule] = (),
    draw: Draw | None = None,
    registry: MutableMapping[str, Recipe] = RECIPES,
) -> Callable[[Callable[[Run], Result]], Callable[[Run], Result]]:
    """Return a decorator that registers a function as the recipe of an item of a paper.

    Parameters
    ----------
    name : str
        Name of the recipe for `grokphys reproduce`, such as "ding-5".
    paper : {"Musat", "Liu", "Ding", "He", "beyond"}
        Paper to which the item belongs.
    item : str
        Item of the paper, such as "Figure 5" or "Table 2".
    shows : str
        What the item shows. The first sentence must stand alone, as lists have no other.
    quick : object
        Setting of a smoke test, which takes seconds and gives pictures but no verdicts.
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
    registry : dict, optional
        Where to register the recipe; `RECIPES` by default.

    Returns
    -------
    callable
        Decorator of a function of a `Run` that returns a `Result`. The decorator raises an `InputError` if
        the name is taken, or two rules have the same name.
    """

    def register(make: Callable[[Run], Result]) -> Callable[[Run], Result]:
        if name in registry:
            raise InputError(f"name must be new, got {name!r}, which {registry[name].module} has registered")
        names = [rule.name for rule in rules]
        if len(set(names)) < len(names):
            raise InputError(f"the rules of {name} must have different names, got {names}")
        settings: dict[Budget, Any] = {"quick": quick, "paper": paper_setting}

        @wraps(make)
        def made(run: Run) -> Result:
            result = make(run)
            return result if draw is None else replace(result, figures=draw(run.setting, result.columns()))

        registry[name] = Recipe(name, paper, item, shows, settings, cost, tuple(rules), made, draw)
        return made

    return register
