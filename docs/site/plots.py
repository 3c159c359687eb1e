"""Plots of the tables in bench/results that have a column of ratios against a peer: each row a dot, by group, on a log axis."""
import csv
import html
import math
import statistics

COLUMNS = ("speedup", "ratio")
PEERS = {"sweep": None}  # tables whose ratio is not against a peer


def rows_of(path):
    lines = [line for line in path.read_text(encoding="utf-8").split("\n\n")[0].split("\n") if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t" if path.suffix == ".tsv" else ","))


def group_of(row):
    """Rows of a type and layout, of a batch size, or of names that begin alike."""
    of = " ".join(row[c] for c in ("type", "layout") if row.get(c))
    if of: return of
    if row.get("batch"): return "batch " + row["batch"]
    return (row.get("name") or row["layer"]).split("_")[0]


def groups(path):
    """{group: ratios} of a table, {} where it has none."""
    if path.suffix not in (".csv", ".tsv") or any(word in path.name for word in PEERS): return {}
    found = {}
    for row in rows_of(path):
        column = next((c for c in COLUMNS if row.get(c)), None)
        if column is None or row[column] == "-": continue
        found.setdefault(group_of(row), []).append(float(row[column]))
    return found


def of(path):
    """The plot as inline SVG, or None."""
    data = groups(path)
    if not data: return None
    values = [v for group in data.values() for v in group]
    low, high = math.log(min(0.5, *values) / 1.1), math.log(max(2, *values) * 1.1)
    left, width, step, top = 150, 560, 24, 30
    height = top + step * len(data) + 30
    def at(v): return left + (math.log(v) - low) / (high - low) * width
    out = [f'<svg class="plot" viewBox="0 0 {left + width + 20} {height}" role="img"><title>{html.escape(path.name)}</title>']
    for v in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64):
        if low <= math.log(v) <= high:
            out.append(f'<line class="{"one" if v == 1 else "grid"}" x1="{at(v):.1f}" x2="{at(v):.1f}" y1="{top - 6}" y2="{height - 22}"/>'
                       f'<text x="{at(v):.1f}" y="{height - 6}" text-anchor="middle">{v:g}x</text>')
    for i, (name, ratios) in enumerate(data.items()):
        y = top + step * i + 6
        out.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{html.escape(name)} ({len(ratios)})</text>')
        out += [f'<circle class="row" cx="{at(v):.1f}" cy="{y}" r="3.5"/>' for v in ratios]
        out.append(f'<line class="middle" x1="{at(statistics.median(ratios)):.1f}" x2="{at(statistics.median(ratios)):.1f}" y1="{y - 8}" y2="{y + 8}"/>')
    out.append(f'<text x="{left}" y="14">times as fast as the peer, by group (rows); the bar is the median</text></svg>')
    return "".join(out)


def all_of(folder):
    """(path, plot) of every table of ratios in a folder, newest first."""
    drawn = ((path, of(path)) for path in sorted(folder.iterdir(), reverse=True))
    return [(path, plot) for path, plot in drawn if plot]
