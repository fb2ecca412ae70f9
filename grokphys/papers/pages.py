"""The published pages, each a function of the recipes and of the results in `docs/results/`.

`docs/rules.md` is a function of the recipes alone; `docs/scoreboard.md`, `docs/gallery.md` and
`docs/findings.md` of the recipes and of their stored results at the papers' settings.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grokphys.papers.findings import FINDINGS
from grokphys.papers.recipe import Number, Paper, Recipe, Rule
from grokphys.papers.results import Stored

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
recipe ran at the setting of the paper. What is claimed, its bounds and its margin do not change after the
run: a result stores a digest of them, and a test compares it with that of the present ones. If a measurement
was corrected after the run, or its words were made clear, a note in italics says so.

* **A number** is *not covered* if the interval of our number minus the printed one excludes zero by more than
  the printed rounding. If the paper prints an interval, it is taken into account. The number is *covered* if
  the 95 % interval of the difference contains zero, within the rounding, and half of the width of our 95 %
  interval is at most the margin. Otherwise the result is *inconclusive*.
* **A statement** *holds* if the whole interval of its effect lies in the range of the rule, and *does not
  hold* if it lies outside. If the interval contains a bound of the range, our data are *inconclusive*. The
  range of a statement of equality has two sides.
* **Intervals** resample what was drawn independently: embeddings, networks or training sets. All claims of an
  item are decided together by Holm's procedure, so that the probability of any wrong *holds*, *does not hold*
  or *not covered* among them is at most 5 %. *Covered* is weaker: nothing speaks against the number.
* **A correction of the method.** An audit found, after the first runs, that *covered* had counted as a
  decision in Holm's procedure, which made later ones easier, and that the interval of the paper had not been
  widened with ours. All results were judged again from their tables; git's history has the verdicts before.
* **Chance** describes data for which a statement is not true. A test shuffles stored results in this way:
  the statement may hold for at most one shuffle in twenty.
* **Fitted** marks a row whose setting was chosen to reproduce this number.
* Only runs at the setting of the paper are judged. Others are listed as *not run yet*, with their cost.

In the tables below, *the paper says* gives the words or the number of the paper and their place in it, and
*chance* what the same measurement gives where the claim is not true. The *unit* is drawn independently, so
the intervals resample it."""
VERDICTS = {
    "holds": "A statement of the paper. The whole interval of our effect lies in the range of its rule.",
    "does not hold": "A statement of the paper. The whole interval lies outside of that range.",
    "covered": "A number of the paper. Ours agrees with it, and our interval is narrow enough to tell.",
    "not covered": "A number of the paper. The interval of the difference from ours excludes zero.",
    "inconclusive": "The interval is too wide to decide, so more runs would be needed.",
}
HOW_TO_SEE = """\
Every picture was made at the setting of the paper, by the command below it. The title of an embedding gives
the number of its run or network, and then its structure: a *circle* with the ratio of its largest norm to
its smallest, or the number of grid imperfections (*imperf.*). The validation accuracy of a
network follows."""
HOW_TO_READ = """\
*Here* is our estimate with its interval in brackets, or *undefined* where too few runs reach what is
measured. The interval has the level at which the claim was decided or left open, which is at least 95 %,
because all claims of an item are decided together. Where the data set no upper bound, the row says *at
least*. *Exact* marks a count or a proof, which has no error, and *all the same* a sample without any spread.
The *sample* counts what was drawn independently. *Fitted* marks a setting that the paper leaves open and that
was chosen to reproduce this number. The *rule* of a statement is the range in which the whole interval must
lie. [The rules](rules.md) also say in italics what was corrected or made clear after a run."""


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
                ("claim", "the paper says", "what is measured", "rule", "chance", "unit"),
                (_rule_row(rule) for rule in recipe.rules),
            )
            lines.append("")
    return "\n".join(lines)


def scoreboard_page(
    recipes: Mapping[str, Recipe], results: Mapping[str, Stored], replicas: Mapping[str, Stored]
) -> str:
    """Return Markdown of all items with their verdicts, and of those that ran again with other seeds."""
    verdicts = Counter(claim["verdict"] for one in results.values() for claim in one.about["claims"])
    lines = [
        "# Scoreboard",
        "",
        "Every table and figure of the papers, with what we measured next to what the paper says. Written by",
        "`grokphys reproduce --publish docs`, from [the results](results/README.md) and by",
        "[the rules](rules.md), which were written before the runs.",
        "",
        f"{len(results)} of {len(recipes)} recipes have run at the setting of the paper. They judge "
        f"{verdicts.total()} claims.",
        "",
        *table(
            ("verdict", "claims", "meaning"),
            ((f"**{word}**", str(verdicts[word]), meaning) for word, meaning in VERDICTS.items()),
        ),
        "",
        HOW_TO_READ,
        "",
    ]
    for paper, title in PAPERS.items():
        chosen = [one for one in recipes.values() if one.paper == paper]
        if chosen:
            lines += [f"## {title}", "", *_judged(chosen, results)]
            missing = NOT_MADE.get(paper, {}).items()
            lines += [f"{item} is not reproduced: it is {why}.\n" for item, why in missing]
    if replicas:
        lines += [*AGAIN, "", *_replica_table(results, replicas), ""]
    ran = [_run_row(one.about) for one in [*results.values(), *replicas.values()]]
    if ran:
        header = ("recipe", "seconds", "seeds", "date", "version", "processor")
        lines += ["## What ran", "", *table(header, ran)]
    return "\n".join(lines).rstrip()


def gallery_page(recipes: Mapping[str, Recipe], results: Mapping[str, Stored]) -> str:
    """Return Markdown of the pictures of all results at the papers' settings."""
    lines = ["# Gallery", "", HOW_TO_SEE, ""]
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
        title = finding.title if results.keys() & set(finding.recipes) else f"Conjecture: {finding.title}"
        lines += [f"## {title}", "", finding.words, "", *_judged(chosen, results, "statement or number")]
    return "\n".join(lines).rstrip()


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return Markdown of a table; bars inside of cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(typeset(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]


def typeset(text: str) -> str:
    """Return text with subscripts, such as those of f_a and P_0(D), and with minus signs before numbers."""
    parts = text.split("`")
    for k in range(0, len(parts), 2):  # what is not code
        parts[k] = re.sub(r"(?<![\w$\\])(\w)_(\w)(?!\w)", r"\1<sub>\2</sub>", parts[k])
        parts[k] = re.sub(r"(?<![\w.)\]])-(?=\d)", "−", parts[k])
    return "`".join(parts)


def _judged(
    recipes: Iterable[Recipe], results: Mapping[str, Stored], told: str = "the paper says"
) -> list[str]:
    """Return a table of the claims of recipes, and one of those that have not run."""
    chosen = list(recipes)
    rows = [row for one in chosen if one.name in results for row in _rows(one, results[one.name])]
    waiting = [one for one in chosen if one.name not in results]
    lines = [*table(("item", "claim", told, "here", "sample", "verdict"), rows), ""] if rows else []
    if waiting:
        header = ("not run yet", "what it shows", "cost on two cores")
        lines += table(header, ((f"{one.item} `{one.name}`", one.shows, one.cost) for one in waiting))
        lines.append("")
    return lines


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
    note = f" (*{rule.note}*)" if rule.note else ""
    if isinstance(rule, Number):
        printed = f"{rule.printed} ({rule.printed.source})"
        told = (printed, f"this number{note}", f"margin {rule.margin:g}", "")
    else:
        chance = rule.chance if isinstance(rule.chance, str) else "shuffled"
        told = (f"“{rule.quote}” ({rule.source})", rule.effect + note, _range(rule.least, rule.most), chance)
    return (name, *told, rule.independent)


def _range(least: float, most: float) -> str:
    if least == -float("inf"):
        return f"at most {most:g}"
    return f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"


def _rows(recipe: Recipe, stored: Stored) -> Iterable[Sequence[str]]:
    name, said = f"{recipe.item} `{recipe.name}`", ""
    claims = stored.about["claims"]
    if not claims:
        yield name, recipe.shows, "", "", "", "made; nothing to judge"
    for claim in claims:
        paper, measured = claim.get("printed"), claim["name"]
        if paper is None:
            rule = _range(_bound(claim["least"]), _bound(claim["most"]))
            paper = "the same" if claim["quote"] == said else f"“{claim['quote']}”"
            said, measured = claim["quote"], f"**{measured}**: {claim['effect']} (rule: {rule})"
        of = f"{claim['count']:,} {claim['independent']}{'' if claim['count'] == 1 else 's'}"
        marks = f"**{claim['verdict']}**" + (", *fitted*" if claim["fitted"] else "")
        yield name, measured, paper, _ours(claim), of, marks
        name = ""


def _bound(value: float | str) -> float:
    return float(value)


def _ours(claim: Mapping[str, Any]) -> str:
    """Return an estimate with its interval, to the digits that the interval allows."""
    numbers = [claim[side] for side in ("estimate", "low", "high")]
    value, low, high = (math.nan if number is None else float(number) for number in numbers)
    digits = claim["digits"]
    if value == low == high:
        return f"{value:.{digits}f}, {'exact' if claim['count'] == 1 else 'all the same'}"
    half = (high - low) / 2
    if 0 < half < math.inf:
        digits = min(digits, max(0, 1 - math.floor(math.log10(half))))
    if 0 < max(abs(low), abs(high)) < 0.5 * 10**-digits:
        return f"less than {10**-digits:.{digits}f} in size"
    if high == math.inf:
        return (
            f"{value:.{digits}f}, at least {low:.{digits}f}" if value < high else f"at least {low:.{digits}f}"
        )
    if math.isnan(value):
        return "undefined"
    shown = f"{value:.{digits}f}"
    return shown if math.isnan(half) else f"{shown} [{low:.{digits}f},\N{NO-BREAK SPACE}{high:.{digits}f}]"


def _run_row(about: Mapping[str, Any]) -> Sequence[str]:
    seeds = list(map(str, about["seeds"]))
    shown = ", ".join(seeds[:4]) + (f", … ({len(seeds)})" if len(seeds) > 4 else "")
    made = about["made_with"]
    date = about["date"].partition("T")[0]
    return (
        f"`{about['recipe']}`",
        f"{about['seconds']:,.0f}",
        shown or "-",
        date,
        made["grokphys"],
        made["processor"],
    )
