"""The published pages, whose parts between marks are filled from the recipes and from `docs/results/`.

A mark is a line such as ``<!-- fill claims liu-scaling liu-groups -->``, and the part reaches to ``<!-- end
-->``. Everything else on a page is written by hand.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from html import escape
from typing import Any

from analysis.stats.intervals import Interval
from grokphys.papers.judge import counted
from grokphys.papers.recipe import FIDELITY, Number, Paper, Recipe, Rule, Word
from grokphys.papers.results import Stored

PAGES = ("rules.md", "scoreboard.md", "gallery.md", "notes.md")
VERDICTS: Mapping[Word, str] = {
    "agrees": "●",
    "disagrees": "✕",
    "undecided": "○",
    "undecidable": "◌",
    "other data": "–",
}
"""Sign of each verdict."""
PAPERS: Mapping[Paper, tuple[str, str]] = {
    "Musat": ("Musat 2024, *Clustering and Alignment*", "2408.09414"),
    "Liu": ("Liu et al. 2022, *Towards Understanding Grokking: An Effective Theory*", "2205.10343"),
    "Ding": ("Ding et al. 2024, *Survival of the Fittest Representation*", "2405.17420"),
    "He": ("He et al. 2026, *On the Mechanism and Dynamics of Modular Addition*", "2602.16849"),
    "beyond": ("Beyond the papers", ""),
}
"""Title of the section of each paper, and its number at arXiv."""
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
VALUE = r"(?:p|f_a|δ) = [\d.]+|decay [\d.]+|from step \d+"
VARIANT = re.compile(rf"({VALUE})[:,] (.+)|(.+), ({VALUE})")
"""Name of a claim that is made for several values of a parameter, which stand side by side on its line."""

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
    for paper in PAPERS:
        chosen = [recipe for recipe in recipes.values() if recipe.paper == paper and recipe.rules]
        lines += _title(paper) if chosen else []
        for recipe in chosen:
            told = f"<b>{recipe.item}</b> <code>{recipe.name}</code> {first_sentence(recipe.shows)}"
            lines += [f'<details id="{recipe.name}"><summary>{typeset(told)}</summary>', ""]
            header = ("claim", "the paper says", "what is measured", "rule", "false with", "unit")
            lines += [*table(header, (_rule_row(rule) for rule in recipe.rules)), "", "</details>", ""]
    return lines


def _title(paper: Paper) -> list[str]:
    """Return the title of the section of a paper, and a link to it."""
    title, number = PAPERS[paper]
    web = " (we read the authors' web page and code)" if paper == "He" else ""
    link = [f"[arXiv:{number}](https://arxiv.org/abs/{number}){web}", ""] if number else []
    return [f"## {title}", "", *link]


def _heading(recipe: Recipe) -> str:
    """Return the title of the section of an item."""
    return typeset(f"{recipe.item[0].upper()}{recipe.item[1:]} `{recipe.name}`")


def _link(page: str, recipe: Recipe) -> str:
    """Return the address of the section of an item on a page."""
    text = re.sub(r"<[^>]*>|[^\w\- ]", "", _heading(recipe).lower())
    return f"{page}.md#{text.replace(' ', '-')}"


def _verdicts(recipes: Recipes, results: Results) -> list[str]:
    """Return how many claims of the papers have each verdict, at their setting and at the nearest."""
    of_papers = [name for name in results if recipes[name].paper != "beyond"]
    rules = [rule for name in of_papers for rule in recipes[name].rules]
    claims = [claim for name in of_papers for claim in results[name].about["claims"]]
    counts = Counter(
        (claim["verdict"], rule.fidelity.partition(":")[0]) for claim, rule in zip(claims, rules, strict=True)
    )
    rows = (
        (f"{_sign(word)} {word}", *(str(counts[word, setting]) for setting in FIDELITY)) for word in VERDICTS
    )
    return table(("verdict", "paper's setting", "nearest", "other data"), rows)


def _sign(word: Word) -> str:
    """Return the sign of a verdict, which the style of the site colors."""
    return f'<b class="{word.replace(" ", "-")}">{VERDICTS[word]}</b>'


def _scoreboard(recipes: Recipes, results: Results) -> list[str]:
    lines = []
    for paper in PAPERS:
        chosen = [one for one in recipes.values() if one.paper == paper]
        if chosen and paper != "beyond":
            lines += [*_title(paper), *_matrix(chosen, results), ""]
            missing = (f"{item} is {why}" for item, why in NOT_MADE.get(paper, {}).items())
            lines += [f"Not reproduced: {'; '.join(missing)}.", ""] if paper in NOT_MADE else []
            for recipe in chosen:
                first, *more = _item(recipe, results)
                drawn = recipe.name in results and results[recipe.name].about["figures"]
                picture = f" [Picture]({_link('gallery', recipe)})." if drawn else ""
                lines += [f"### {_heading(recipe)}", "", first + picture, *more]
    return lines


def _matrix(recipes: Iterable[Recipe], results: Results) -> list[str]:
    """Return a table in HTML of items by verdicts, whose signs lead to the claims."""
    heads = "".join(f"<th>{_sign(word)} <span>{word}</span></th>" for word in VERDICTS)
    lines = ['<table class="matrix">', f"<tr><th>item</th><th>setting</th>{heads}</tr>"]
    for recipe in recipes:
        item = f'<tr><td><a href="#{recipe.name}">{typeset(recipe.item)}</a></td>'
        if not recipe.rules or recipe.name not in results:
            why = "no claim to judge" if recipe.name in results else "not run yet"
            lines.append(f'{item}<td colspan="{1 + len(VERDICTS)}">{why}</td></tr>')
            continue
        settings = dict.fromkeys(rule.fidelity.partition(":")[0] for rule in recipe.rules)
        cells = dict.fromkeys(VERDICTS, "")
        claims = results[recipe.name].about["claims"]
        for number, (rule, claim) in enumerate(zip(recipe.rules, claims, strict=True), 1):
            link = f'<a href="#{recipe.name}.{number}" title="{escape(rule.name)}">'
            cells[claim["verdict"]] += f"{link}{_sign(claim['verdict'])}</a>"
        told = "".join(f"<td>{cell}</td>" for cell in (", ".join(settings), *cells.values()))
        lines.append(f"{item}{told}</tr>")
    return [*lines, "</table>"]


def _gallery(recipes: Recipes, results: Results) -> list[str]:
    lines = []
    for paper in PAPERS:
        drawn = [name for name in recipes if name in results and results[name].about["figures"]]
        chosen = [recipes[name] for name in drawn if recipes[name].paper == paper]
        lines += _title(paper) if chosen else []
        for one in chosen:
            lines += [f"### {_heading(one)}", "", typeset(one.shows), ""]
            for name in results[one.name].about["figures"]:
                lines += [f"![{one.item}](gallery/{name}.png)", ""]
            if verdicts := [claim["verdict"] for claim in results[one.name].about["claims"]]:
                signs = "".join(map(_sign, verdicts))
                page = "findings.md" if paper == "beyond" else _link("scoreboard", one)
                lines += [f"{signs} **{counted(verdicts)}** ([the claims]({page}))", ""]
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
    """Return the lines on items for a page of another subject."""
    return [line for one in recipes for line in (f"**{_heading(one)}**", "", *_item(one, results))]


def _item(recipe: Recipe, results: Results) -> list[str]:
    """Return the lines below the title of an item: what it shows, its claims, and those withdrawn."""
    begin, stored = f'<a id="{recipe.name}"></a>', results.get(recipe.name)
    shows = typeset(first_sentence(recipe.shows))
    if stored is None:
        lines = [f"{begin}{shows} *Not run yet*; it takes {recipe.cost} on two cores."]
    else:
        verdicts = [claim["verdict"] for claim in stored.about["claims"]]
        told = f"**{counted(verdicts)}.** " if verdicts else "No claim to judge. "
        others = (rule.fidelity for rule in recipe.rules if rule.fidelity not in ("", "paper's"))
        settings = "; ".join(dict.fromkeys(others))
        second = " A second look, at 2.5 %." if recipe.looks > 1 else ""
        lines = [f"{begin}{told}{shows}{f' Setting: {settings}.' if settings else ''}{second}"]
        lines += ["", *_claims(recipe, stored)]
    reasons: dict[str, list[str]] = {}
    for rule, why in recipe.withdrawn.items():
        reasons.setdefault(why, []).append(typeset(rule))
    withdrawn = (f"Withdrawn: *{', '.join(rules)}* ({typeset(why)})." for why, rules in reasons.items())
    return [*lines, "", " ".join(withdrawn), ""]


def _claims(recipe: Recipe, stored: Stored) -> list[str]:
    """Return a line for each claim, or for all values of a parameter, which unfolds to its rule."""
    groups: dict[tuple[str, str], list[tuple[str, str, Rule, Mapping[str, Any]]]] = {}
    for number, (rule, claim) in enumerate(zip(recipe.rules, stored.about["claims"], strict=True), 1):
        match = VARIANT.fullmatch(rule.name)
        value, title = (match[1] or match[4], match[2] or match[3]) if match else ("", rule.name)
        members = groups.setdefault((rule.family, title), [])
        members.append((value, f"{recipe.name}.{number}", rule, claim))
    lines, before = [], ""
    for (family, title), members in groups.items():
        lines += [f"*{typeset(family)}*", ""] if family not in ("", before) else []
        before, cells, folded = family, "", dict[str, list[str]]()
        title = title if len(members) > 1 else members[0][2].name
        sizes = [f"n = {c['count']:,} {_units(r, c['count'])}" for _, _, r, c in members]
        shared = len(members) > 1 == len(set(sizes))
        for (value, place, rule, claim), size in zip(members, sizes, strict=True):
            word = claim["verdict"]
            told = f"{value if len(members) > 1 else ''} {_sign(word)} {word}: {_ours(claim, rule)}"
            told += "" if shared else f", {size}"
            told += f"; paper {rule.quoted}" if isinstance(rule, Number) else ""
            cells += f'<span id="{place}" class="{word.replace(" ", "-")}">{told.strip()}</span>'
            folded.setdefault(_terms(rule, word), []).append(value)
        title += f", {sizes[0]}" if shared else ""
        line = typeset(f"<summary><b>{title}</b> {cells}<i>{_words(members[0][2])}</i></summary>")
        lines += [f'<details class="claim" data-paper="{recipe.paper}">{line}', ""]
        for terms, values in folded.items():
            lines += [f"{typeset(', '.join(values) + ': ' if len(folded) > 1 else '')}{terms}", ""]
        lines += ["</details>", ""]
    return lines


def _units(rule: Rule, count: int) -> str:
    """Return the unit of a rule, in the plural unless the count is one, such as "sets of frequencies"."""
    unit, of, whose = rule.independent.partition(" of ")
    return f"{unit}{'s' * (count != 1)}{of}{whose}"


def _terms(rule: Rule, word: Word) -> str:
    """Return what a rule says and measures, its range, and where it is false, as Markdown."""
    told, asked, limits, chance, _ = map(typeset, _rule_row(rule)[1:])
    parts = [told, f"We measure {asked}", f"Rule: {limits}", f"False with: {chance}" if chance else ""]
    parts += [f"*Fitted*: {rule.fitted}" if rule.fitted else ""]
    parts += [f"Undecidable: {rule.undecidable}" if word == "undecidable" else ""]
    return " ".join(f"{part}." for part in parts if part)


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


def _words(rule: Rule) -> str:
    """Return a statement, in quotation marks if it is of a paper; nothing for a number."""
    if isinstance(rule, Number):
        return ""
    return rule.quote if rule.source.startswith(OURS) else f"“{rule.quote}”"


def _rule_row(rule: Rule) -> Sequence[str]:
    name = f"{rule.name} (*fitted*: {rule.fitted})" if rule.fitted else rule.name
    note = f" (*{rule.note}*)" if rule.note else ""
    if isinstance(rule, Number):
        told = (f"{rule.quoted} ({rule.source})", f"this number{note}", f"margin {rule.margin:g}", "")
    else:
        limits = _range(rule.least, rule.most)
        told = (f"{_words(rule)} ({rule.source})", rule.effect + note, limits, rule.chance.words)
    return (name, *told, rule.independent)


def _range(least: float, most: float) -> str:
    if least == -float("inf"):
        return f"at most {most:g}"
    return f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"


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
