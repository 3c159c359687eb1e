"""The page of `hankel bench --html` in a real browser: it draws, sorts, filters and shows names on hover, without an
error; `hankel compare` sees what got slower."""
import json
import os
import re
import shutil
import subprocess

import pytest

HANKEL = os.environ.get("HANKEL_BIN", "build/bin/hankel")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PROBLEMS = ["1d_c4_i64_k8_w3_last", "2d_c8_i9x9_k16_w3x3_p1_first", "1d_c16_i200_k16_w5_g16_first"]

PROBE = """
<script>
const result = {errors: failures};
const dots = document.querySelectorAll("#roofline circle");
result.dots = dots.length;
result.roofs = document.querySelectorAll("#roofline .roof").length;
result.bars = document.querySelectorAll("#floors rect").length;
dots[0].dispatchEvent(new PointerEvent("pointermove", {clientX: 50, clientY: 50}));
result.tip = document.getElementById("tip").textContent;
result.shown = getComputedStyle(document.getElementById("tip")).display;
const column = (i) => [...document.querySelectorAll("#table tbody tr")].map((r) => r.cells[i].textContent);
const button = document.querySelectorAll("#table th button")[2];
button.click(); result.down = column(2).map(Number);
button.click(); result.up = column(2).map(Number);
const filter = document.getElementById("filter");
filter.value = "g16"; filter.dispatchEvent(new Event("input"));
result.filtered = column(0).length;
document.body.dataset.result = JSON.stringify(result);
</script>
"""
CATCH = "<script>const failures = []; window.onerror = (m) => failures.push(String(m));</script>"


LOOK = """
<script>
const look = {errors: failures, width: innerWidth, wide: document.documentElement.scrollWidth};
const boxes = (id) => [...document.querySelectorAll(id + " text")].filter((e) => !e.hasAttribute("transform")).map((e) => e.getBoundingClientRect());
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
look.collisions = 0;
for (const id of ["#roofline", "#families", "#floors"]) {
  const all = boxes(id);
  all.forEach((a, i) => all.slice(i + 1).forEach((b) => { look.collisions += meet(a, b); }));
  const box = document.querySelector(id).getBoundingClientRect();
  look.collisions += all.filter((a) => a.left < box.left - 1 || a.right > box.right + 1).length;
}
const limits = [...document.querySelectorAll("#floors .roof")].map((e) => e.getBoundingClientRect());
look.crossed = boxes("#floors").filter((a) => limits.some((b) => meet(a, {left: b.left - 2, right: b.right + 2, top: b.top, bottom: b.bottom}))).length;
const css = (e, name) => getComputedStyle(e)[name];
look.bars = [...new Set([...document.querySelectorAll("#floors .bar")].map((e) => css(e, "color")))];
look.limit = css(document.querySelector("#floors .roof"), "stroke");
look.ground = css(document.body, "backgroundColor");
look.legend = document.querySelectorAll("#legend span").length;
look.noisy = [document.querySelectorAll("#floors .noisy").length, document.querySelectorAll("#roofline .noisy").length, document.querySelectorAll("#table .noise").length];
const scroll = document.querySelector(".scroll").getBoundingClientRect();
look.decisions = [...document.querySelectorAll("td.decision")].map((e) => e.getBoundingClientRect().right <= scroll.right + 1 && e.scrollWidth <= e.clientWidth);
look.words = Math.min(...[...document.querySelectorAll("svg text")].map((e) => e.getBoundingClientRect().height));
document.body.dataset.result = JSON.stringify(look);
</script>
"""


def run(*words):
    env = dict(os.environ, HANKEL_WISDOM="none")
    return subprocess.run([HANKEL, *words], capture_output=True, text=True, env=env, timeout=120)


def bench(tmp_path, *words):
    batch = tmp_path / "batch.txt"
    batch.write_text("\n".join(PROBLEMS) + "\n")
    return run("bench", "--batch", str(batch), "--seconds", "0.01", "--threads", "1", *words)


@pytest.fixture
def page(tmp_path):
    out = tmp_path / "report.html"
    done = bench(tmp_path, "--html", str(out))
    assert done.returncode == 0, done.stderr
    return out


def test_page_is_whole_and_alone(page):
    text = page.read_text()
    assert "@DATA@" not in text and text.rstrip().endswith("</html>")
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.S).group(1))
    assert len(data["rows"]) == len(PROBLEMS) and all(r["us"] > 0 for r in data["rows"])
    assert data["context"]["peak"] > 0 and data["context"]["bandwidth"] > 0
    assert not re.search(r'(?:src|href)\s*=\s*["\']?(?:https?:)?//', text), "the page must load nothing from elsewhere"


def crowded(page):
    """The page with 40 rows of five families, three peers, two noisy rows and long decisions."""
    text = page.read_text()
    found = re.search(r'(<script id="data"[^>]*>)(.*?)</script>', text, re.S)
    data = json.loads(found.group(2))
    row, data["rows"], data["peers"] = data["rows"][0], [], ["torch", "onednn", "xnnpack"]
    for i in range(40):  # 1.5 to 3 times the floor, so that the limit stands in the middle of the names
        floor = max(row["flops"] * (1 + i) / row["peak"], row["bytes"] / data["context"]["bandwidth"]) * 1e6
        us = 1.5 * floor * (1 + i / 40)
        data["rows"].append(dict(
            row, name=f"family{i % 5}_a_rather_long_name_of_a_problem_{i}", us=us, flops=row["flops"] * (1 + i), spread=9.0 if i in (3, 17) else 1.0,
            peer={p: us * (0.8 + k) for k, p in enumerate(data["peers"])}, best="torch", ratio=0.8 + i / 10,
            decision="state / convert / transpose / igemm kernel=hk_igemm_f32_6x64_avx512 bm=112 bn=16 bk=1024 pack=0 shards=1 parts=1"))
    return text[:found.start(2)] + json.dumps(data).replace("<", "\\u003c") + text[found.end(2):]


def in_browser(text, tmp_path, width=1280, dark=False):
    probe = tmp_path / "probe.html"
    probe.write_text(text)
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path}/profile",
         f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--window-size={width},2000", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=120)
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    assert found, "the probe did not run: " + done.stderr[-500:]
    return json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 500])
def test_page_can_be_read(page, tmp_path, width, dark):
    text = crowded(page).replace("<head>", "<head>" + CATCH, 1).replace("</body>", LOOK + "</body>")
    look = in_browser(text, tmp_path, width, dark)
    assert look["errors"] == [] and look["width"] == width and look["wide"] <= width
    assert look["collisions"] == 0 and look["crossed"] == 0, "words on words, or on the limit"
    assert len(look["bars"]) == 5 and look["limit"] not in look["bars"] + [look["ground"]]
    assert look["legend"] == 5 + 2 and look["noisy"] == [2, 2, 2]
    assert look["words"] >= 10 and (look["ground"] != "rgb(255, 255, 255)") == dark
    assert width < 1280 or all(look["decisions"])


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed")
def test_page_in_a_browser(page, tmp_path):
    text = page.read_text().replace("<head>", "<head>" + CATCH, 1).replace("</body>", PROBE + "</body>")
    probe = tmp_path / "probe.html"
    probe.write_text(text)
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=120)
    dom = done.stdout
    assert 'data-ready="yes"' in dom, done.stderr[-500:]
    found = re.search(r'data-result="([^"]*)"', dom)
    assert found, "the probe did not run"
    result = json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert result["errors"] == []
    assert result["dots"] == len(PROBLEMS) and result["roofs"] == 1 and result["bars"] == len(PROBLEMS)
    assert "GFLOP/s" in result["tip"] and result["shown"] == "block"
    assert result["down"] == sorted(result["down"], reverse=True) and result["up"] == sorted(result["up"])
    assert result["filtered"] == 1


def test_compare(tmp_path):
    done = bench(tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    old, new, bad = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "bad.json"
    old.write_text(done.stdout)
    same = run("compare", str(old), str(old))
    if same.returncode == 3:
        pytest.skip("built without jansson")
    assert same.returncode == 0 and same.stdout.startswith("0 slower, 0 faster, 3 the same")
    data = json.loads(done.stdout)
    for item in data["benchmarks"]:
        if item["aggregate_name"] == "median" and item["run_name"].startswith("2d"):
            item["real_time"] *= 50
    new.write_text(json.dumps(data))
    slower = run("compare", str(old), str(new))
    assert slower.returncode == 1 and "1 slower" in slower.stdout and "2d_" in slower.stdout
    assert run("compare", str(new), str(old)).returncode == 0
    for text in ["", "{", "[]", '{"benchmarks": 3}', '{"benchmarks": [1, {"run_name": 4}]}', '{"benchmarks": []}']:
        bad.write_text(text)
        assert run("compare", str(old), str(bad)).returncode == 2
    assert run("compare", str(old)).returncode == 2
    assert run("compare", str(old), str(tmp_path / "none")).returncode == 2


def test_tune_and_wisdom(tmp_path):
    env = dict(os.environ, HANKEL_WISDOM=str(tmp_path / "wisdom"), HANKEL_VERBOSE="profile_create")
    def go(*words):
        return subprocess.run([HANKEL, *words], capture_output=True, text=True, env=env, timeout=120)
    problem = "1d_c4_i64_k8_w3_last"
    assert go("plan", problem, "--wisdom-only").returncode != 0
    tuned = go("tune", problem, "--threads", "1", "--time-limit", "0.3")
    assert tuned.returncode == 0 and "kernel=" in tuned.stdout
    assert "known" not in tuned.stdout + tuned.stderr
    known = go("tune", problem, "--threads", "1")
    assert known.returncode == 0 and known.stdout.endswith("\tknown\n")
    assert "1 of 1 problems were known and not measured; --again measures them" in known.stderr
    again = go("tune", problem, "--threads", "1", "--time-limit", "0.3", "--again")
    assert again.returncode == 0 and again.stdout.endswith(" s\n") and "known" not in again.stderr
    shown = go("wisdom")
    assert shown.returncode == 0 and shown.stdout.splitlines()[0] == "hankel-wisdom 2" and len(shown.stdout.splitlines()) == 3
    plan = go("plan", problem, "--threads", "1", "--wisdom-only")
    assert plan.returncode == 0 and "(wisdom)" in plan.stdout and ",wisdom," in plan.stderr
    assert go("wisdom", "path").stdout.strip() == str(tmp_path / "wisdom")
    other = tmp_path / "other"
    assert go("wisdom", "import", str(tmp_path / "wisdom"), "--save", str(other)).returncode == 0
    assert other.read_text() == (tmp_path / "wisdom").read_text()
    other.write_text("junk")
    assert go("wisdom", "import", str(other)).returncode != 0
    audit = go("tune", "--audit", "--random", "2", "--threads", "1", "--csv")
    assert audit.returncode == 0 and len(audit.stdout.splitlines()) == 3
    record = go("tune", "--audit", "--candidates", "--seconds", "0.01", "--random", "2", "--threads", "1")
    head, columns, *rows = record.stdout.splitlines()
    assert record.returncode == 0 and "threads: 1; epilogue: none" in head and columns == "problem,decision,predicted_us,us"
    assert [row.split(",")[0] != "" for row in rows].count(True) == 2 and all(float(row.split(",")[3]) > 0 for row in rows)
