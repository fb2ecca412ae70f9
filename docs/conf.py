"""How Sphinx builds the site: `make docs` writes it to build/docs, without the network."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
os.environ["PYTHONPATH"] = str(ROOT)

project = "GrokPhys"
author = "GrokPhys contributors"
copyright = author  # noqa: A001 - the name that Sphinx reads
version = release = version_of("grokphys")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_additions",
]
exclude_patterns = ["results/*/**", "examples/**", "made/examples/**/*.ipynb"]
templates_path = ["templates"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r".*")]  # names of other projects are not linked

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "pydata_sphinx_theme"
html_title = "GrokPhys"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = [("claims.js", {"defer": "defer"})]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in ("index", "guide/index", "findings")},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "start", "glossary")}
html_math_renderer = "mathml"

# The interface
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"  # the sections of a docstring give types, shapes and units
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # the column is narrow
numpydoc_show_class_members = False

# Examples
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "made/examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,  # seconds of the machine that built the site say little
    "plot_gallery": True,
    "abort_on_example_error": True,
    "capture_repr": (),
    "image_srcset": ["2x"],
}
