"""What our pages need of Sphinx beyond its own extensions.

Formulas become MathML, which needs no scripts, no fonts and no network. Bars in docstrings stay bars, and
signatures show real defaults. Links to the source of an example, which a reader of the repository follows,
lead to its page in the gallery; those to the live page are no pages of Sphinx.
"""

import re
from dataclasses import MISSING, fields
from typing import Any, Literal

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.ext import autosummary

CODE_OR_BAR = re.compile(r"(``.+?``|`[^`]*`|^\s*(?:>>>|\.\.\.)[^\n]*)|(?<!\\)\|", re.DOTALL | re.MULTILINE)
PAGE = re.compile(r"`{0,2}docs/([\w/]+)\.md`{0,2}")
EXPRESSION = re.compile(r"[\[({].*[\])}]|\d+|None")
"""Defaults that Sphinx can read in a signature: lists, tuples, mappings, numbers and None."""
ABBREVIATIONS = ("Eq.", "Eqs.", "Fig.", "Figs.")
"""Where a sentence does not end, so that summaries are not cut there."""
FUNCTION = re.compile(r"(<mi>(?:sin|cos|ln|log|exp)</mi>)(<mo[^>]*>&#x00028;)?")
"""A function, with the parenthesis behind it if there is one."""
THIN, SLASH = '<mspace width="0.167em"/>', '<mo lspace="0" rspace="0">&#x0002F;</mo>'
"""The space that MathML leaves out around functions, and a solidus without the space that it adds."""
GALLERY = (
    (re.compile(r"\]\(((?:\.\./)?)examples/GALLERY_HEADER\.rst\)"), r"](\1made/examples/index.rst)"),
    (re.compile(r"\]\(((?:\.\./)?)examples/(\w+)\.py\)"), r"](\1made/examples/\2.rst)"),
    (
        re.compile(r"\[([^\]]*)\]\(((?:\.\./)?)extra/(live/index\.html(?:#[\w-]+)?)\)"),
        r'<a href="\2\3">\1</a>',
    ),
)
"""Links to examples and to the live page, and where they lead on the site."""


def mathml(formula: str, display: Literal["inline", "block"] = "inline") -> str:
    """Return a formula as MathML, with the spaces that TeX has around functions such as log and around /."""
    text = FUNCTION.sub(
        lambda found: f"{THIN}{found[1]}{found[2] or THIN}", convert(formula, display=display)
    )
    return text.replace("<mo>&#x0002F;</mo>", SLASH)


def inline(translator: Any, node: Any) -> None:
    """Write a formula within a line."""
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def block(translator: Any, node: Any) -> None:
    """Write a formula that stands by itself."""
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise SkipNode


def link_pages(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Make links of the paths of pages, such as docs/glossary.md, which `help` shows as they are."""
    lines[:] = [PAGE.sub(r":doc:`docs/\1.md </\1>`", line) for line in lines]


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Keep reStructuredText from reading the bars of |x| as a substitution."""
    lines[:] = CODE_OR_BAR.sub(lambda found: found[1] or "\\|", "\n".join(lines)).split("\n")


def skip_routing(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator; its own pages explain them."""
    return True if re.fullmatch(r"[sg]et_\w+_request|get_metadata_routing", name) else None


def show_defaults(
    app: Any, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Show the defaults that a dataclass makes anew for each object, where Python shows <factory>.

    A default that is no expression of Python becomes ``...``; its docstring says what it is.
    """
    if signature and "<factory>" in signature:
        for one in fields(thing):
            if one.default_factory is not MISSING:
                default = repr(one.default_factory())
                default = default if EXPRESSION.fullmatch(default) else "..."
                signature = signature.replace(f"{one.name}=<factory>", f"{one.name}={default}")
    return signature, returns


def link_gallery(app: Any, page: str, source: list[str]) -> None:
    """Let links to examples and to the live page lead to where these are on the site."""
    for pattern, target in GALLERY:
        source[0] = pattern.sub(target, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register all of it."""
    autosummary.WELL_KNOWN_ABBREVIATIONS = (*autosummary.WELL_KNOWN_ABBREVIATIONS, *ABBREVIATIONS)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
    app.connect("autodoc-process-signature", show_defaults)
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("source-read", link_gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
