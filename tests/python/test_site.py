"""The site of `make docs`: no link or anchor leads nowhere, every function has its place in the API reference, what a newcomer
looks for is two clicks away, the texts it quotes parse, and a browser opens, searches and lays it out, from a file."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from conftest import SOURCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if not shutil.which("mkdocs"):
    pytest.skip("mkdocs is not installed", allow_module_level=True)

WANTED = {  # what a newcomer looks for: the words of the link on the way, where it ends
    "install": (r"^Install$", "docs/install.html"), "first convolution": (r"^First convolution$", "index.html#from-c"),
    "why is it slow": (r"slow", "docs/faq.html"), "streaming": (r"streams?\b", "docs/operations/streams.html"),
    "GPU": (r"^GPU$|^CUDA$", "docs/cuda.html"), "adding a kernel": (r"kernel", "docs/add-a-kernel.html")}

PROBE = """
<script>
window.onerror = (m) => { failures.push(String(m)); };
window.addEventListener("load", async () => {
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const search = document.getElementById("search"), list = document.getElementById("found");
  const look = {failures, width: innerWidth, wide: document.documentElement.scrollWidth, hits: {}};
  look.nav = getComputedStyle(document.querySelector("nav")).display;
  document.querySelector("header .menu").click();
  look.opened = getComputedStyle(document.querySelector("nav")).display;
  document.querySelector("header .menu").click();
  look.images = [...document.images].every((image) => image.complete && image.naturalWidth > 0);
  for (const words of ["hk_plan_create", "xruns crackles", "add a kernel", "zzzzqqq"]) {
    search.value = words;
    search.dispatchEvent(new Event("input"));
    for (let i = 0; i < 100 && list.hidden; i++) await wait(20);
    look.hits[words] = [...list.querySelectorAll("a")].map((a) => a.getAttribute("href"));
  }
  look.ground = getComputedStyle(document.body).backgroundColor;
  document.body.dataset.result = JSON.stringify(look);
});
</script>
"""


class Page(HTMLParser):
    """Links with their words, and anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.open = [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.anchors.add(values["id"])
        for name in ("href", "src"):
            if values.get(name):
                self.links.append([values[name], ""])
        if tag == "a":
            self.open = self.links[-1] if values.get("href") else None

    def handle_endtag(self, tag):
        if tag == "a":
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.open[1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, str(SOURCE / "docs/site/build.py"), str(out)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site):
    return {p.relative_to(site).as_posix(): Page(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}


def destination(site, page, link):
    """(page or file, anchor) of a link within the site; None where it leads out of it."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = (site / page).parent / unquote(parts.path) if parts.path else site / page
    return Path(path).resolve().relative_to(site).as_posix(), unquote(parts.fragment)


def test_links(site, pages):
    broken = []
    for name, page in pages.items():
        for link, _ in page.links:
            end = destination(site, name, link)
            if end and (not (site / end[0]).is_file() or end[1] and end[0] in pages and end[1] not in pages[end[0]].anchors):
                broken.append(f"{name}: {link}")
    assert not broken, "\n".join(broken[:40])
    assert len(pages) > 80


def test_page_loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)\s*=\s*["\']?(?:https?:)?//', path.read_text(encoding="utf-8")), path


def test_two_clicks(site, pages):
    steps, queue = {"index.html": 0}, deque(["index.html"])
    words = {}
    while queue:
        name = queue.popleft()
        for link, text in pages[name].links:
            end = destination(site, name, link)
            if not end or end[0] not in pages or steps[name] > 1:
                continue
            words.setdefault(end[0] + ("#" + end[1] if end[1] else ""), set()).add(" ".join(text.split()))
            if end[0] not in steps:
                steps[end[0]] = steps[name] + 1
                queue.append(end[0])
    for wish, (pattern, place) in WANTED.items():
        assert steps.get(place.split("#")[0], 9) <= 2, f"{wish}: more than two clicks"
        assert any(re.search(pattern, said, re.I) for said in words[place]), f"{wish}: no link says so: {words[place]}"


def test_api_reference(pages):
    anchors = pages["api/hankel.html"].anchors
    functions = (SOURCE / "tests/abi/hankel.symbols").read_text().split()
    types = re.findall(r"^(?:typedef (?:struct|enum) |} )(hk_\w+)", (SOURCE / "include/hankel.h").read_text(), re.M)
    missing = [name for name in functions + types if name not in anchors]
    assert not missing, f"not in the API reference: {missing}"
    assert {"hk_nam_process", "hk_rig_set", "hk_nam_facts"} <= pages["api/hankel_nam.html"].anchors


def test_documents_quote_problems_that_parse():
    import libhankel
    count = 0
    for path in [*(SOURCE / "docs/operations").glob("*.md"), SOURCE / "docs/faq.md", SOURCE / "docs/install.md"]:
        for text in re.findall(r"\b[123]d_[a-z][a-z0-9x:_=.-]*", path.read_text()):
            assert str(libhankel.Problem(text)), f"{path}: {text}"
            count += 1
    assert count > 10


def test_python_of_the_operations_runs():
    env = dict(os.environ, PYTHONPATH=str(SOURCE / "python"))
    for path in (SOURCE / "docs/operations").glob("*.md"):
        for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.S | re.M):
            done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=True, env=env)
            said = re.findall(r": (\[.*\])$", block, re.M)
            assert done.stdout.split("\n")[:-1] == said, path


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1300, 400])
def test_in_a_browser(site, tmp_path, width):
    page = site / "docs/operations/probe.html"
    text = (site / "docs/operations/dense.html").read_text(encoding="utf-8")
    page.write_text(text.replace("<head>", "<head><script>const failures = [];</script>" + PROBE, 1), encoding="utf-8")
    try:
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path}/profile",
             f"--window-size={max(width, 500)},1000", "--virtual-time-budget=20000", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=120)
    finally:
        page.unlink()
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert found, "the probe did not run: " + done.stderr[-500:]
    look = json.loads(html.unescape(found.group(1)))
    assert look["failures"] == [] and look["wide"] <= look["width"] and look["images"]
    assert look["hits"]["hk_plan_create"][0].endswith("api/hankel.html#hk_plan_create"), look["hits"]
    assert any("docs/faq.html" in hit or "docs/nam.html" in hit for hit in look["hits"]["xruns crackles"][:3])
    assert any("add-a-kernel.html" in hit for hit in look["hits"]["add a kernel"][:5])
    assert look["hits"]["zzzzqqq"] == []
    assert (look["nav"], look["opened"]) == (("block", "block") if width > 700 else ("none", "block"))
