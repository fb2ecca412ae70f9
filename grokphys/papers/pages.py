"""The published pages, whose parts between marks are filled from the recipes and from `docs/results/`.

A mark is a line such as ``<!-- fill claims liu-scaling liu-groups -->``, and the part reaches to ``<!-- end
-->``. Everything else on a page is written by hand.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from analysis.stats.intervals import Interval
from grokphys.papers.judge import counted
from grokphys.papers.recipe import FIDELITY, Number, Paper, Recipe, Rule, Word
from grokphys.papers.results import Stored

PAGES = ("rules.md", "scoreboard.md", "gallery.md", "notes.md")
VERDICTS: Mapping[Word, tuple[str, str]] = {
    "agrees": (
        "●",
        "The whole interval of our effect lies in the range that the rule of a statement allows, or our "
        "number agrees with that of the paper and its interval is narrow enough to tell.",
    ),
    "disagrees": (
        "✕",
        "The whole interval of our effect lies outside this range, or the interval of the difference between "
        "our number and that of the paper excludes zero.",
    ),
    "undecided": ("○", "The interval is too wide to decide, so more runs would be needed."),
    "undecidable": ("◌", "Undecided, and no number of runs would change that."),
    "other data": ("–", "Our data are not those of the paper, so there is no verdict."),
}
"""Sign and meaning of each verdict."""
PAPERS: Mapping[Paper, str] = {
    "Musat": "Musat, *Clustering and Alignment*",
    "Liu": "Liu et al. 2022, *Towards Understanding Grokking: An Effective Theory*",
    "Ding": "Ding et al. 2024, *Survival of the Fittest Representation*",
    "He": "He et al. 2026, *On the Mechanism and Dynamics of Modular Addition* (by the authors' web page)",
    "beyond": "Beyond the papers",
}
PROOF = "a derivation, which tests in `tests/physics` repeat"
NOT_MADE: Mapping[Paper, Mapping[str, str]] = {
    "Liu": {
        "Figure 9": f"{PROOF}; for its count of samples see the [errata](errata.md)",
        "Figure 11": PROOF,
        "Figure 16": PROOF,
        "Appendix F": f"{PROOF}; for the sum of the embeddings see the [errata](errata.md)",
        "Appendix L": PROOF,
        "Table 1": "a definition; see the [notes](notes.md)",
    },
    "Ding": {"Figure 1": "a drawing"},
}
"""Items of the papers that no recipe can reproduce, and why."""
OURS = ("beyond the papers", "beyond both papers", "a question of this project", "this project")
"""Beginnings of the sources of statements that no paper makes, which have no quotation marks."""


Recipes = Mapping[str, Recipe]
Results = Mapping[str, Stored]


def filled(text: str, recipes: Recipes, results: Results, replicas: Results) -> str:
    """Return the text of a page with its marked parts filled.

    Parameters
    ----------
    text : str
        Page in Markdown, with marks of the parts "rules", "verdicts", "scoreboard", "replicas",
        "gallery", and "claims" with the names of recipes.
    recipes : mapping of str to Recipe
        All recipes, by name.
    results : mapping of str to Stored
        Results at the papers' settings, by the name of their recipe.
    replicas : mapping of str to Stored
        Results with other random seeds, by "seeds-K/NAME".
    """
    parts: dict[str, Callable[..., list[str]]] = {
        "rules": lambda: _rules(recipes),
        "verdicts": lambda: _verdicts(recipes, results),
        "scoreboard": lambda: _scoreboard(recipes, results),
        "replicas": lambda: _replica_table(recipes, results, replicas),
        "gallery": lambda: _gallery(recipes, results),
        "claims": lambda *names: _judged([recipes[name] for name in names], results),
    }

    def part(mark: re.Match[str]) -> str:
        name, *arguments = mark[1].split()
        content = "\n".join(["", *parts[name](*arguments)]).rstrip()
        return f"<!-- fill {mark[1]} -->\n{content}\n\n<!-- end -->"

    return re.sub(r"<!-- fill (.*?) -->.*?<!-- end -->", part, text, flags=re.DOTALL)


def first_sentence(text: str) -> str:
    """Return the first sentence of a caption, up to the first full stop that a space follows."""
    return text.partition(". ")[0].removesuffix(".") + "."


def _rules(recipes: Recipes) -> list[str]:
    lines = []
    for paper, title in PAPERS.items():
        chosen = [recipe for recipe in recipes.values() if recipe.paper == paper and recipe.rules]
        lines += [f"## {title}", ""] if chosen else []
        for recipe in chosen:
            lines += [f"### {recipe.item} `{recipe.name}`", "", typeset(first_sentence(recipe.shows)), ""]
            header = ("claim", "the paper says", "what is measured", "rule", "false with", "unit")
            lines += [*table(header, (_rule_row(rule) for rule in recipe.rules)), ""]
    return lines


def _verdicts(recipes: Recipes, results: Results) -> list[str]:
    """Return how many claims of the papers have each verdict, at their setting and at the nearest."""
    of_papers = [name for name in results if recipes[name].paper != "beyond"]
    rules = [rule for name in of_papers for rule in recipes[name].rules]
    claims = [claim for name in of_papers for claim in results[name].about["claims"]]
    counts = Counter(
        (claim["verdict"], rule.fidelity.partition(":")[0]) for claim, rule in zip(claims, rules, strict=True)
    )
    rows = (
        (f"{sign} **{word}**", *(str(counts[word, setting]) for setting in FIDELITY), meaning)
        for word, (sign, meaning) in VERDICTS.items()
    )
    return table(("verdict", "setting of the paper", "nearest setting", "other data", "meaning"), rows)


def _scoreboard(recipes: Recipes, results: Results) -> list[str]:
    lines = []
    for paper, title in PAPERS.items():
        chosen = [one for one in recipes.values() if one.paper == paper]
        if chosen and paper != "beyond":
            lines += [f"## {title}", "", *_judged(chosen, results)]
            missing = NOT_MADE.get(paper, {}).items()
            lines += [f"{item} is not reproduced: it is {why}.\n" for item, why in missing]
    return lines


def _gallery(recipes: Recipes, results: Results) -> list[str]:
    lines = []
    for paper, title in PAPERS.items():
        drawn = [name for name in recipes if name in results and results[name].about["figures"]]
        chosen = [recipes[name] for name in drawn if recipes[name].paper == paper]
        lines += [f"## {title}", ""] if chosen else []
        for one in chosen:
            title = one.item[0].upper() + one.item[1:]
            lines += [typeset(f"**{title}{'' if title.endswith('?') else '.'}** {one.shows}"), ""]
            for name in results[one.name].about["figures"]:
                lines += [f"![{one.item}](gallery/{name}.png)", ""]
            if verdicts := [claim["verdict"] for claim in results[one.name].about["claims"]]:
                page = "findings" if paper == "beyond" else "scoreboard"
                lines += [f"**{counted(verdicts)}** ([the {page}]({page}.md))", ""]
            lines += [f"`grokphys reproduce {one.name} --budget paper`", ""]
    return lines


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table: the header, a separator, and the rows.

    All cells are typeset by `typeset`, and vertical bars in them are escaped.
    """
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(typeset(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def typeset(text: str) -> str:
    """Return Markdown in which names such as f_a have subscripts, and negative numbers minus signs.

    Code between backquotes in the `text` stays as it is, and so do names within formulas.
    """
    parts = text.split("`")
    for k in range(0, len(parts), 2):  # what is not code
        parts[k] = re.sub(r"(?<![^\W\d])(?<![$\\])([^\W\d])_(\w)(?!\w)", r"<i>\1</i><sub>\2</sub>", parts[k])
        parts[k] = re.sub(r"(?<![\w.)\]])-(?=\d)", "−", parts[k])
    return "`".join(parts)


def _judged(recipes: Iterable[Recipe], results: Results) -> list[str]:
    """Return the lines of a table of judged claims, of one of the recipes that have not run, and a list.

    Recipes without a result among `results`, which are by name, have not run. The list has the rules that
    were withdrawn.
    """
    chosen = list(recipes)
    rows = [row for one in chosen if one.name in results for row in _rows(one, results[one.name])]
    lines = [*table(("item", "claims", "setting", "verdict"), rows), ""] if rows else []
    if waiting := [one for one in chosen if one.name not in results]:
        header = ("not run yet", "what it tests", "cost on two cores")
        told = ((f"{one.item} `{one.name}`", first_sentence(one.shows), one.cost) for one in waiting)
        lines += [*table(header, told), ""]
    reasons = [(f"`{one.name}`, {rule}", why) for one in chosen for rule, why in one.withdrawn.items()]
    if reasons:
        lines += ["Withdrawn, because the rule turned out to be no test:", ""]
        lines += [typeset(f"* {rule}: {why}.") for rule, why in reasons] + [""]
    return lines


def _replica_table(recipes: Recipes, results: Results, replicas: Results) -> list[str]:
    """Return how many verdicts and estimates are the same with other seeds, and a table of the others."""
    counts, rows = Counter[str](), []
    for stored in replicas.values():
        name, shift = stored.about["recipe"], f"+{stored.about['seed_shift']:,}"
        rules, first = recipes[name].rules, results[name].about["claims"] if name in results else ()
        for rule, *pair in zip(rules, first, stored.about["claims"], strict=False):
            verdicts = {claim["verdict"] for claim in pair}
            counts.update(["claims", f"apart: {_apart(*pair)}"])
            if len(verdicts) > 1:
                counts["opposite" if verdicts == {"agrees", "disagrees"} else "once"] += 1
                told = (f"{_ours(claim, rule)}: {claim['verdict']}" for claim in pair)
                rows.append((f"`{name}`", rule.name, shift, *told))
    lines = [
        f"{counts['claims'] - len(rows)} of {counts['claims']} verdicts of {len(replicas)} recipes are the "
        f"same. {counts['once']} are decided in one run only, and {counts['opposite']} are opposite. "
        f"{counts['apart: True']} of {counts['apart: True'] + counts['apart: False']} pairs of estimates are "
        "further apart than their intervals allow.",
        "",
    ]
    return [*lines, *table(("recipe", "claim", "seeds", "first", "again"), rows)] if rows else lines


def _apart(first: Mapping[str, Any], again: Mapping[str, Any]) -> bool | None:
    """Return whether two estimates of a claim differ by more than their intervals allow together.

    These are the root of the sum of the squares of the halves that face each other. The result is None if an
    estimate or such a half is not finite, and if both are zero, as those of an exact number are.
    """
    (less, _, high), (more, low, _) = sorted(map(_numbers, (first, again)))
    allowed = math.hypot(high - less, more - low)
    return more - less > allowed if 0 < allowed < math.inf else None


def _numbers(claim: Mapping[str, Any]) -> list[float]:
    """Return estimate, low and high of a stored claim."""
    numbers = (claim[side] for side in ("estimate", "low", "high"))
    return [math.nan if number is None else float(number) for number in numbers]


def _rule_row(rule: Rule) -> Sequence[str]:
    name = f"{rule.name} (*fitted*: {rule.fitted})" if rule.fitted else rule.name
    note = f" (*{rule.note}*)" if rule.note else ""
    if isinstance(rule, Number):
        told = (f"{rule.quoted} ({rule.source})", f"this number{note}", f"margin {rule.margin:g}", "")
    else:
        words = rule.quote if rule.source.startswith(OURS) else f"“{rule.quote}”"
        limits = _range(rule.least, rule.most)
        told = (f"{words} ({rule.source})", rule.effect + note, limits, rule.chance.words)
    return (name, *told, rule.independent)


def _range(least: float, most: float) -> str:
    if least == -float("inf"):
        return f"at most {most:g}"
    return f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"


def _rows(recipe: Recipe, stored: Stored) -> Iterable[Sequence[str]]:
    """Yield a row of cells for each family of claims of a recipe, whose members are folded in the second."""
    name, pairs = (
        f"{recipe.item} `{recipe.name}`",
        list(zip(recipe.rules, stored.about["claims"], strict=True)),
    )
    for family in dict.fromkeys(rule.family for rule in recipe.rules) or [""]:
        members = [pair for pair in pairs if pair[0].family == family]
        title = family or first_sentence(recipe.shows)
        fidelities = dict.fromkeys(rule.fidelity for rule, _ in members)
        reasons = [words.partition(": ")[2] for words in fidelities]
        folded = [*(_member(*pair) for pair in members), *(f"Setting: {why}." for why in reasons if why)]
        if folded:
            items = "".join(f"<li>{item}</li>" for item in folded)
            title = f"<details><summary>{title}</summary><ul>{items}</ul></details>"
        words = [claim["verdict"] for _, claim in members]
        told = counted(words)
        if len(members) == 1:
            told = f"{words[0]}: {_ours(members[0][1], members[0][0])}"
        signs = "".join(VERDICTS[word][0] for word in words)
        setting = ", ".join(dict.fromkeys(words.partition(":")[0] for words in fidelities))
        yield name, title, setting or "ours", f"{signs} {told}" if members else "no claim to judge"
        name = ""


def _member(rule: Rule, claim: Mapping[str, Any]) -> str:
    """Return what a rule asks, our number, the sample and the verdict as a line of HTML."""
    told, asked, limits, _, unit = _rule_row(rule)[1:]
    of = f"{claim['count']:,} {unit}{'' if claim['count'] == 1 else 's'}"
    hopeless = f" ({rule.undecidable})" if claim["verdict"] == "undecidable" else ""
    return (
        f"**{rule.name}**: **{claim['verdict']}**{hopeless}. {told}. Here {asked}: {_ours(claim, rule)} "
        f"of {of} (rule: {limits}{'; *fitted*' if rule.fitted else ''})"
    )


def _ours(claim: Mapping[str, Any], rule: Rule) -> str:
    """Return the estimate of a claim and the possible part of its interval as text, with suitable digits."""
    middle, left, right = _numbers(claim)
    value, low, high, _ = astuple(Interval(middle, left, right, claim["count"]).within(*rule.possible))
    digits = claim["digits"]
    if value == low == high and claim["count"] == 1:
        return f"{value:.{digits}f}, exact"
    half = (high - low) / 2
    if 0 < half < math.inf:
        digits = min(digits, max(0, 1 - math.floor(math.log10(half))))
    if 0 < max(abs(low), abs(high)) < 0.5 * 10**-digits:
        return f"less than {10**-digits:.{digits}f} in size"
    if high == math.inf:
        estimate, least = (f"{side:.{digits}f}" for side in (value, low))
        return f"at least {least}" if estimate == least or value == high else f"{estimate}, at least {least}"
    if math.isnan(value):
        return "undefined"
    shown = f"{value:.{digits}f}"
    return shown if math.isnan(half) else f"{shown} [{low:.{digits}f},\N{NO-BREAK SPACE}{high:.{digits}f}]"
