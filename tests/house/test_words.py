"""The words of the product: standard terms, and American spelling, instead of private phrases.

Each phrase below was once used in a message, a docstring or a comment, and readers had to decode it. Add a
phrase with the standard wording beside it when you meet another one.
"""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("physics", "nets", "analysis", "grokphys")
PRIVATE = {
    r"held against|hold .{1,30} against each other": "compare",
    r"strange partners?": "runs paired at random",
    r"not by half": "reached by fewer than half",
    r"one's own": "your own, or separate",
    r"of one mind": "agree",
    r"the same of the other": "the second ensemble",
    r"but for (those|where|rounding)": "except",
    r"data of the world": "real data",
    r"the two above": "name the functions",
    r"nobody (else|looks|knows)": "say who does",
    r"stands? beside": "is compared with, or next to",
    r"told so|what told": "predicts",
    r"brings its own": "has",
    r"for ever\b": "permanently",
    r"where nothing else is said": "by default",
    r"is not all there|come to exist": "say what happens",
    r"not of that kind": "invalid",
    r"(row|panel|value|member|file|run|pack) an? (run|cell|target|circle|command|thread)\b": "one for each",
    r"what stands? there|stands? in (`|\[)|belongs? here\b|here belongs?": "is in, or this package holds",
    r"\b(goes|go|went) on\b(?! (all|every|any|each|the|one|a) )": "continue",
    r"\banew\b|begins? again": "again, or start again",
    r"blows? up\b|blown up": "diverge",
    r"leaves? the numbers|within the numbers": "overflow",
    r"looked at every|is looked at|are looked at": "check",
    r"comes? of (it|them)\b|became of|becomes of": "result, or fate",
    r"beside (it|them|each)\b": "next to",
    r"part of the (runs|circles|frames|variance|examples|steps)\b": "fraction of",
}
BRITISH = re.compile(
    r"\bcolour\w*|\bneighbour\w*|\bbehaviou\w+|\bfavour\w*|\bgrey\b|\bper cent\b|\blearnt\b|\bcentre\w*"
    r"|\b(optimis|generalis|memoris|summaris|recognis|organis|minimis|maximis|crystallis|vectoris|initialis"
    r"|normalis|realis|visualis|characteris)(e|es|ed|er|ing|ation)\b",
    re.IGNORECASE,
)
ANY = re.compile("|".join(f"(?:{phrase})" for phrase in PRIVATE), re.IGNORECASE)
"""All phrases at once: few texts have any, so that the single phrases are seldom tried."""
PARAMETERS = re.compile(r"\b(normalise|initialisation)\b")
"""Names of parameters, which files and scripts spell so."""
QUOTES = re.compile(r"“[^”]*”|`[^`]*`")


def texts(path):
    """Comments and strings of a module, with the line on which each begins."""
    source = path.read_text(encoding="utf-8")
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.COMMENT)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], QUOTES.sub("", " ".join(token.string.split()))


def modules(papers):
    """All modules of the product, with or without the recipes, whose rules quote the papers."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if papers or "papers" not in path.parts:
                yield path


def test_no_private_phrases():
    found = {
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}, better {better!r}"
        for path in modules(papers=False)
        for line, text in texts(path)
        if ANY.search(text)
        for phrase, better in PRIVATE.items()
        if (match := re.search(phrase, text, re.IGNORECASE))
    }
    assert not found, "\n".join(sorted(found))


def test_american_spelling():
    found = {
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}"
        for path in modules(papers=True)
        for line, text in texts(path)
        if " " in text and (match := BRITISH.search(PARAMETERS.sub("", text)))
    }
    assert not found, "\n".join(sorted(found))
