"""How Sphinx builds the documentation; scripts/docs gathers the sources in one folder and calls it."""

from importlib.metadata import version as installed_version

project = "tracer"
author = "The tracer developers"
copyright = "2026, The tracer developers"
version = release = installed_version("tracer")

extensions = ["myst_nb"]
root_doc = "index"
exclude_patterns = ["jupyter_execute", "**.ipynb_checkpoints"]
suppress_warnings = ["myst.xref_missing"]  # links to files of the repository that have no page

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300

html_theme = "alabaster"
