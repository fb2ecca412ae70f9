"""The published pages, each a function of the recipes and of the results in `docs/results/`.

`docs/rules.md` is a function of the recipes alone; `docs/scoreboard.md` and `docs/gallery.md` of the recipes
and of their stored results at the papers' settings. Nothing is computed here or typed by hand.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.stats.intervals import Interval
from grokphys.output import make_directory, write_text
from grokphys.papers.findings import FINDINGS
from grokphys.papers.recipe import Number, Paper, Recipe, Rule
from grokphys.papers.results import Stored, read_result, rules_digest
from physics.errors import InputError

PAPERS: Mapping[Paper, str] = {
    "Musat": "Musat, *Clustering and Alignment*",
    "Liu": "Liu et al. 2022, *Towards Understanding Grokking: An Effective Theory*",
    "Ding": "Ding et al. 2024, *Survival of the Fittest Representation*",
    "He": "He et al. 2026, *On the Mechanism and Dynamics of Modular Addition*",
    "beyond": "Beyond the papers",
}
NOT_MADE: Mapping[Paper, Mapping[str, str]] = {
    "Ding": {"Figure 1": "a drawing"},
}
"""Items that no recipe can make, and why."""
HOW_IT_IS_JUDGED = """\
Every rule below is part of the recipe that it judges, and was in the history of this repository before the
recipe ran at the setting of the paper. No rule changes after its run: a result stores a digest of the rules
by which it was judged, and a test compares it with that of the present ones.

* **A number** is *covered* if the interval of our number minus the printed one contains zero, within the
  printed rounding, and our interval is no wider than the margin. If the paper prints an interval, it is taken
  into account. The number is *not covered* if the interval of the difference excludes zero, and the result is
  *inconclusive* if our interval is too wide to tell.
* **A statement** *holds* if the whole interval of its effect lies in the range of the rule, and *does not
  hold* if it lies outside. If the interval contains a bound of the range, our data are *inconclusive*. The
  range of a statement of equality has two sides.
* **Intervals** resample what was drawn independently: embeddings, networks or training sets. All claims of an
  item are decided together by Holm's procedure, so that the probability of any wrong decision among them
  is 5 %.
* **Chance** describes data for which a statement is not true. A test shuffles stored results in this way:
  the statement may hold for at most one shuffle in twenty.
* **Fitted** marks a row whose setting was chosen to reproduce this number.
* Only runs at the setting of the paper are judged. Other recipes are listed as *not run*, with their cost."""

AGAIN = (
    "## Again with other seeds",
    "",
    "Some recipes ran a second time with `--other-seeds`, which repeats all random draws. They were",
    "chosen at random among all that had run; the rules are the same.",
)


def rules_page(recipes: Mapping[str, Recipe]) -> str:
    """Return Markdown of all rules, by paper."""
    lines = ["# Rules", "", "Written by `grokphys reproduce --publish docs`, from the recipes.", ""]
    lines += [HOW_IT_IS_JUDGED, ""]
    for paper, title in PAPERS.items():
        chosen = [recipe for recipe in recipes.values() if recipe.paper == paper and recipe.rules]
        lines += [f"## {title}", ""] if chosen else []
        for recipe in chosen:
            lines += [f"### {recipe.item} `{recipe.name}`", "", recipe.shows, ""]
            lines += table(
                ("claim", "the paper", "where", "measured", "rule", "chance", "independent"),
                (_rule_row(rule) for rule in recipe.rules),
            )
            lines.append("")
    return "\n".join(lines)


def scoreboard_page(
    recipes: Mapping[str, Recipe], results: Mapping[str, Stored], replicas: Mapping[str, Stored]
) -> str:
    """Return Markdown of all items with their verdicts, and of those that ran again with other seeds."""
    words = [claim["verdict"] for one in results.values() for claim in one.about["claims"]]
    plural = {"holds": "hold", "does not hold": "do not hold"}
    counts = ", ".join(f"{words.count(word)} {plural.get(word, word)}" for word in sorted(set(words)))
    missing = len(recipes) - len(results)
    lines = [
        "# Scoreboard",
        "",
        "Written by `grokphys reproduce --publish docs`, from [the results](results/README.md) and by",
        "[the rules](rules.md), which were written before the runs.",
        "",
        f"Of {len(recipes)} recipes, {len(results)} have run at the paper's setting"
        + (f": {counts}." if words else ".")
        + (f" {missing} have not run; their rows state their cost on two cores." if missing else ""),
        "",
    ]
    header = ("item", "claim and what is measured", "the paper says", "here", "sample", "verdict")
    for paper, title in PAPERS.items():
        rows = [row for one in recipes.values() if one.paper == paper for row in _rows(one, results)]
        rows += [(item, "", "", "", "", f"not made: {why}") for item, why in NOT_MADE.get(paper, {}).items()]
        if rows:
            lines += [f"## {title}", "", *table(header, rows), ""]
    if replicas:
        lines += [*AGAIN, "", *_replica_table(results, replicas), ""]
    ran = [_run_row(one.about) for one in [*results.values(), *replicas.values()]]
    if ran:
        lines += ["## What ran", "", *table(("recipe", "seconds", "seeds", "date", "code", "processor"), ran)]
    return "\n".join(lines).rstrip()


def gallery_page(recipes: Mapping[str, Recipe], results: Mapping[str, Stored]) -> str:
    """Return Markdown of the pictures of all results at the papers' settings."""
    lines = ["# Gallery", "", "Every picture was made at the paper's setting, by the command below it.", ""]
    for paper, title in PAPERS.items():
        chosen = [
            one
            for one in recipes.values()
            if one.paper == paper and one.name in results and results[one.name].about["figures"]
        ]
        lines += [f"## {title}", ""] if chosen else []
        for one in chosen:
            title = one.item[0].upper() + one.item[1:]
            lines += [f"**{title}{'' if title.endswith('?') else '.'}** {one.shows}", ""]
            for name in results[one.name].about["figures"]:
                lines += [f"![{one.item}](gallery/{name}.png)", ""]
            lines += [f"`grokphys reproduce {one.name} --budget paper`", ""]
    return "\n".join(lines).rstrip()


def findings_page(recipes: Mapping[str, Recipe], results: Mapping[str, Stored]) -> str:
    """Return Markdown of all findings, with their judged claims, or the cost of a run."""
    lines = [
        "# Findings",
        "",
        "What GrokPhys has found that is not in the papers. Every number below is read from",
        "[the results](results/README.md) and judged by [the rules](rules.md). As long as no recipe of a",
        "finding has run at its full setting, its title says that it is a conjecture.",
        "",
    ]
    for finding in FINDINGS:
        chosen = [recipes[name] for name in finding.recipes if name in recipes]
        rows = [row for recipe in chosen for row in _rows(recipe, results)]
        title = finding.title if results.keys() & set(finding.recipes) else f"Conjecture: {finding.title}"
        lines += [f"## {title}", "", finding.words, ""]
        header = ("recipe", "claim and what is measured", "statement or number", "here", "sample", "verdict")
        lines += [*table(header, rows), ""]
    return "\n".join(lines).rstrip()


def publish(recipes: Mapping[str, Recipe], made: Path, docs: Path) -> list[Path]:
    """Copy results at the papers' settings from `made` to the documentation, and write its pages again.

    Parameters
    ----------
    recipes : mapping
        All recipes by name.
    made : Path
        Directory that `run_recipes` has filled. Results that it lacks, or has at the quick budget, stay
        unchanged.
    docs : Path
        Directory of the documentation: results/, gallery/, rules.md, scoreboard.md,
        gallery.md and findings.md.

    Raises
    ------
    InputError
        If a result was judged by other rules than the present ones.
    """
    results, gallery = docs / "results", docs / "gallery"
    make_directory(results, gallery)
    shifts = [path.name for path in sorted(made.glob("seeds-*"))]
    places = [(name, name) for name in recipes]
    for place, name in [*places, *((f"{shift}/{name}", name) for shift in shifts for name in recipes)]:
        recipe, stored = recipes[name], read_result(made / place)
        if stored is None or stored.about["budget"] != "paper":
            continue
        if stored.about["rules"] != rules_digest(recipe.rules):
            raise InputError(f"the rules of {name} have changed since it ran; run it again, with other seeds")
        folder = results / place
        make_directory(folder)
        for old in folder.iterdir():
            old.unlink()
        for path in sorted((made / place).glob("*.json"), key=lambda path: path.name == "result.json"):
            shutil.copyfile(path, folder / path.name)
        if place == name:
            for figure in stored.about["figures"]:
                shutil.copyfile(made / name / f"{figure}.png", gallery / f"{figure}.png")
    found, replicas = stored_results(recipes, results), stored_replicas(recipes, results)
    return [
        write_text(docs / "rules.md", rules_page(recipes)),
        write_text(docs / "scoreboard.md", scoreboard_page(recipes, found, replicas)),
        write_text(docs / "gallery.md", gallery_page(recipes, found)),
        write_text(docs / "findings.md", findings_page(recipes, found)),
    ]


def stored_results(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Read all existing results, in the order of the recipes."""
    found = {name: read_result(directory / name) for name in recipes}
    return {name: stored for name, stored in found.items() if stored is not None}


def stored_replicas(recipes: Iterable[str], directory: Path) -> dict[str, Stored]:
    """Read all existing results of `--other-seeds`, by "seeds-K/NAME"."""
    names = list(recipes)
    shifts = [path.name for path in sorted(directory.glob("seeds-*"))]
    found = {f"{one}/{name}": read_result(directory / one / name) for one in shifts for name in names}
    return {place: stored for place, stored in found.items() if stored is not None}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return Markdown of a table; bars inside of cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _replica_table(results: Mapping[str, Stored], replicas: Mapping[str, Stored]) -> list[str]:
    """Return a table of the claims that were judged twice, and how many verdicts agree."""
    rows, same = [], 0
    for stored in replicas.values():
        name, shift = stored.about["recipe"], stored.about["seed_shift"]
        before = {claim["name"]: claim for claim in results[name].about["claims"]} if name in results else {}
        for claim in stored.about["claims"]:
            first = before.get(claim["name"])
            if first is not None:
                same += first["verdict"] == claim["verdict"]
                found = (f"{_ours(one)}: {one['verdict']}" for one in (first, claim))
                rows.append((f"`{name}`", claim["name"], f"+{shift:.0e}", *found))
    header = ("recipe", "claim", "seeds", "first", "again")
    return [f"{same} of {len(rows)} verdicts are the same.", "", *table(header, rows)]


def _rule_row(rule: Rule) -> Sequence[str]:
    name = f"{rule.name} (*fitted*: {rule.fitted})" if rule.fitted else rule.name
    if isinstance(rule, Number):
        told = (str(rule.printed), rule.printed.source, "this number", f"margin {rule.margin:g}", "")
    else:
        chance = rule.chance if isinstance(rule.chance, str) else "shuffled"
        told = (f"“{rule.quote}”", rule.source, rule.effect, _range(rule.least, rule.most), chance)
    return (name, *told, rule.independent)


def _range(least: float, most: float) -> str:
    if least == -float("inf"):
        return f"at most {most:g}"
    return f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"


def _rows(recipe: Recipe, results: Mapping[str, Stored]) -> Iterable[Sequence[str]]:
    name = f"{recipe.item} `{recipe.name}`"
    if recipe.name not in results:
        yield name, recipe.shows, "", "", "", f"not run: {recipe.cost}"
        return
    claims = results[recipe.name].about["claims"]
    if not claims:
        yield name, recipe.shows, "", "", "", "made; nothing to judge"
    for k, claim in enumerate(claims):
        paper = claim["printed"] if "printed" in claim else f"“{claim['quote']}”"
        marks = f"**{claim['verdict']}**" + (", *fitted*" if claim["fitted"] else "")
        measured = claim["name"] if "printed" in claim else f"{claim['name']}: {claim['effect']}"
        rule = "" if "printed" in claim else f" ({_range(_bound(claim['least']), _bound(claim['most']))})"
        of = f"{claim['count']} {claim['independent']}s"
        yield "" if k else name, measured + rule, paper, _ours(claim), of, marks


def _bound(value: float | str) -> float:
    return float(value)


def _ours(claim: Mapping[str, Any]) -> str:
    numbers = [claim[side] for side in ("estimate", "low", "high")]
    values = [float("nan") if number is None else float(number) for number in numbers]
    if values[0] == values[1] == values[2]:
        return f"{values[0]:.{claim['digits']}f}, exact"
    return Interval(values[0], values[1], values[2], claim["count"]).format(claim["digits"])


def _run_row(about: Mapping[str, Any]) -> Sequence[str]:
    seeds = list(map(str, about["seeds"]))
    shown = ", ".join(seeds[:4]) + (f", … ({len(seeds)})" if len(seeds) > 4 else "")
    made = about["made_with"]
    date = about["date"].partition("T")[0]
    return (
        f"`{about['recipe']}`",
        f"{about['seconds']:.0f}",
        shown or "-",
        date,
        made["grokphys"],
        made["processor"],
    )
