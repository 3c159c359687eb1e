#!/usr/bin/env python3
"""Builds the documents as a static site: `docs/site/build.py OUT` (make docs). It stages the Markdown of the tree under the names
that it has there, beside the API pages that api.py makes of the headers and the plots that plots.py draws of bench/results, and
hands it to mkdocs with the theme of this folder. Links to files that are no pages (sources, tables) lead to pages that show them.
OUT opens from a file or a server alike. Exits with 77 where mkdocs is missing."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import api
import plots

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
OPERATIONS = ["dense", "depthwise", "grouped", "transposed", "gradients", "int8", "epilogue", "causal", "longconv", "streams"]
NAV = [
    ("Start", [("hankel", "README.md"), ("Install", "docs/install.md"), ("First convolution", "README.md#from-c"),
               ("Why is it slow? FAQ by symptom", "docs/faq.md"), ("Coming from another library", "docs/migrate.md")]),
    ("Guides", [("Manual", "docs/manual.md"), ("Python", "python/README.md"), ("Tuning", "docs/tuning.md"),
                ("Real-time streams", "docs/operations/streams.md"), ("Amp models", "docs/nam.md"), ("GPU", "docs/cuda.md")]),
    ("Operations", [(None, f"docs/operations/{name}.md") for name in OPERATIONS]),
    ("Reference", [("hankel.h", "api/hankel.md"), ("hankel_nam.h", "api/hankel_nam.md"), ("Limits", "docs/limits.md"),
                   ("Algorithms", "docs/algorithms.md"), ("Glossary", "docs/glossary.md"), ("Measurements", "bench/results/README.md"),
                   ("Changes", "CHANGELOG.md")]),
    ("Inside", [("Contributing", "CONTRIBUTING.md"), ("Design", "docs/design.md"), ("Adding a kernel", "docs/add-a-kernel.md"),
                ("Testing", "docs/testing.md"), ("Depthwise on the CPU", "docs/depthwise.md"),
                ("Depthwise on the GPU", "docs/cuda-depthwise.md"), ("Decisions", "docs/decisions/README.md")])]
HEADERS = {"include/hankel.h": "api/hankel.md", "apps/nam/hankel_nam.h": "api/hankel_nam.md"}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
SHOWN = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title><link rel="stylesheet" href="{up}style.css"><body class="file"><p><a href="{up}index.html">hankel</a></p>
<h1>{name}</h1>{plot}<pre>{text}</pre></body></html>
"""


def pages():
    """Every Markdown file that becomes a page, by its path in the tree."""
    names = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "python/README.md", "bench/README.md", "bench/timings/README.md",
             "src/cost/README.md"]
    names += [str(p.relative_to(TOP)) for folder in ("docs", "docs/operations", "docs/decisions", "bench/results")
              for p in sorted((TOP / folder).glob("*.md"))]
    return [name for name in names if (TOP / name).is_file()]


def lists_apart(text):
    """Python-Markdown wants a blank line before a list; other readers, and these documents, do not."""
    out, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        item, before = re.match(r"([-*]|\d+\.) ", line), out[-1] if out else ""
        if item and not fenced and before.strip() and not re.match(r"\s|[-*] |\d+\. ", before):
            out.append("")
        out.append(line)
    return "\n".join(out)


class Stage:
    """The folder that mkdocs reads."""

    def __init__(self, folder):
        self.folder, self.pages, self.shown = folder, set(pages()), set()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def show(self, name):
        """A page that shows a file as it is, with a plot where it is a table of ratios."""
        if name not in self.shown:
            self.shown.add(name)
            up = "../" * name.count("/")
            self.write(name + ".html", SHOWN.format(name=name, up=up, plot=plots.of(TOP / name) or "",
                                                    text=html.escape((TOP / name).read_text(encoding="utf-8"))))
        return name + ".html"

    def target(self, page, link):
        """What a link of a page becomes; itself where it leads out of the tree."""
        if re.match(r"[a-z]+:", link):
            return link
        name = os.path.normpath(os.path.join(os.path.dirname(page), link))
        if (TOP / name).is_dir():
            name += "/README.md"
        name = HEADERS.get(name, name)
        if name in self.pages or name in HEADERS.values() or not (TOP / name).is_file():
            return os.path.relpath(name, os.path.dirname(page) or ".")  # a page, or a link for mkdocs to complain about
        if name.endswith((".svg", ".png")):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, self.folder / name)
        else:
            name = self.show(name)
        return os.path.relpath(name, os.path.dirname(page) or ".")

    def add(self, page):
        text = (TOP / page).read_text(encoding="utf-8")
        parts = re.split(r"(```.*?^```|`[^`\n]*`)", text, flags=re.S | re.M)
        for i in range(0, len(parts), 2):
            parts[i] = LINK.sub(lambda m: m[1] + self.target(page, m[2]) + (m[3] or "") + m[4], parts[i])
        text = lists_apart("".join(parts))
        if page == "bench/results/README.md":
            text += "\n## Plots\n\nEvery row of a table counts; above 1 hankel is faster.\n\n" + "\n".join(
                f'<p><a href="{p.name}.html">{p.name}</a></p>\n{plot}\n' for p, plot in plots.all_of(TOP / "bench/results"))
        self.write(page, text)


def settings(source, out):
    """mkdocs.yml, as JSON, which YAML contains."""
    version = re.search(r'HK_VERSION_TEXT "(.*)"', (TOP / "include/hankel.h").read_text()).group(1)
    nav = [{group: [page if title is None else {title: page} for title, page in entries if "#" not in page]} for group, entries in NAV]
    first = [[title, page.replace("README.md", "index.html")] for _, entries in NAV for title, page in entries if "#" in page]
    return json.dumps({
        "site_name": "hankel", "docs_dir": str(source), "site_dir": str(out), "use_directory_urls": False, "strict": True, "nav": nav,
        "theme": {"name": None, "custom_dir": str(HERE / "theme"), "search_index_only": True, "static_templates": []},
        "plugins": ["search"], "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": False}}, "md_in_html"],
        "extra": {"version": version, "anchors": first}})


def build(out):
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "pages"
        stage = Stage(source)
        for header, page in HEADERS.items():
            stage.write(page, api.page(TOP / header))
        for page in sorted(stage.pages):
            stage.add(page)
        (Path(work) / "mkdocs.yml").write_text(settings(source, out), encoding="utf-8")
        run = subprocess.run(["mkdocs", "build", "--clean", "-f", f"{work}/mkdocs.yml"], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit("\n".join(line for line in (run.stdout + run.stderr).split("\n") if "INFO" not in line))
    index = json.loads((out / "search/search_index.json").read_text(encoding="utf-8"))
    slim = [[d["location"], d["title"], " ".join(d["text"].split())] for d in index["docs"]]
    (out / "search/index.js").write_text("const documents = " + json.dumps(slim, ensure_ascii=False) + ";\n", encoding="utf-8")
    (out / "search/search_index.json").unlink()
    return sum(1 for _ in out.rglob("*.html"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if not shutil.which("mkdocs"):
        print("docs: mkdocs is not installed (apt-get install mkdocs): the site is not built")
        sys.exit(77)
    target = Path(sys.argv[1]).resolve()
    print(f"{build(target)} pages in {target}: open {target}/index.html")
