"""How Sphinx builds the documentation; scripts/docs gathers the sources in one folder and calls it."""

from functools import cache
from html import escape
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from tools import api_pages

project = "tracer"
author = "The tracer developers"
copyright = "2026, The tracer developers"
version = release = installed_version("tracer")

extensions = ["myst_nb", "sphinx.ext.linkcode", "sphinx_copybutton"]
root_doc = "index"
exclude_patterns = ["jupyter_execute", "**.ipynb_checkpoints", "notebooks/examples"]  # the gallery has these
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository that have no page
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
toc_object_entries = False  # 1,700 entries in the sidebar of every page took minutes

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_excludepatterns = ["notebooks/*"]  # stored with their outputs, which the tests compare

html_theme = "furo"
html_title = f"tracer {version}"
html_static_path = ["_static"]
html_css_files = ["tracer.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "github-dark"

# A copied example holds its input alone.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# -- source of every name of the reference ------------------------------------------------------------------

SHOWN: set[str] = set()  # modules to which the reference links, as files below the repository


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the line that defines a name, on a page of this documentation."""
    found = api_pages.source(api_pages.named(f"{info['module']}.{info['fullname']}"))
    if domain != "py" or found is None:
        return None
    file, line = found
    SHOWN.add(file)
    return f"../_source/{file.removesuffix('.py')}.html#L-{line}"


def source_pages(app):
    """Yield a page for every file that the reference links to."""
    for file in sorted(SHOWN):
        code = app.builder.highlighter.highlight_block(
            Path(file).read_text(encoding="utf-8"), "python", linenos="inline", lineanchors="L"
        )
        yield (
            f"_source/{file.removesuffix('.py')}",
            {"title": file, "body": f"<h1>{escape(file)}</h1>{code}"},
            "page.html",
        )


NAVIGATION = {}  # by the depth of a page of source, on which its links depend


def with_one_navigation(app, page, template, context, doctree):
    """Let pages of source share the navigation, which has none of them: for each of 250 it took half of the build."""
    if page.startswith("_source/"):
        context["toctree"] = NAVIGATION.setdefault(page.count("/"), cache(context["toctree"]))


def without_last_lines(app, doctree):
    """Remove the empty lines that end examples, which doctest needs before a fence."""
    for block in doctree.findall(nodes.literal_block):
        if isinstance(block.children[0] if block.children else None, nodes.Text) and len(block.children) == 1:
            text = block.astext().rstrip("\n")
            block.replace(block.children[0], nodes.Text(text))
            block.rawsource = text  # a block that differs from it is not highlighted


def with_pictures(app, doctree, page):
    """Put links with the first picture of each page in the place of the gallery's contents."""
    if page != "gallery/index":
        return
    for contents in list(doctree.findall(addnodes.toctree)):
        links = nodes.bullet_list(classes=["pictures"])
        for example in contents["includefiles"]:
            picture = next(app.env.get_doctree(example).findall(nodes.image)).deepcopy()
            picture["alt"] = ""
            address = app.builder.get_relative_uri(page, example)
            title = nodes.inline("", app.env.titles[example].astext())
            link = nodes.reference("", "", picture, title, internal=True, refuri=address)
            links += nodes.list_item("", addnodes.compact_paragraph("", "", link))
        contents.replace_self([nodes.rubric("", contents["caption"]), links])


def setup(app):
    """Connect the functions above to Sphinx's events."""
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", with_one_navigation, priority=400)  # before the theme's
    app.connect("doctree-read", without_last_lines)
    app.connect("doctree-resolved", with_pictures)
