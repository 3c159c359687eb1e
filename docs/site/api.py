"""The API reference of a header: its sections become headings, each declaration one below them with its comment as text.
A comment directly above declarations describes them; one followed by a blank line is text of its own. Lines of a comment that
are indented (formulas) stay as they are."""
import re

BANNER = re.compile(r"/\* -{3,} *(.+?)$")
NAME = re.compile(r"\b(hk_[a-z0-9_]+|HK_[A-Z0-9_]+)\b")


def declared(code):
    """The names that a run of declarations introduces: functions, types, macros, enumerators of unnamed enums."""
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    names = re.findall(r"^HK_API[^;]*?\b(hk_\w+)\(", code, re.M)
    names += re.findall(r"^typedef[^;{]*\(\*(hk_\w+)\)", code, re.M)
    names += re.findall(r"^typedef (?:struct|enum) (hk_\w+)", code, re.M)
    names += [name for name in re.findall(r"^#define (HK_\w+)", code, re.M) if name != "HK_API"]
    if not names:
        names = re.findall(r"^ +(HK_\w+) *=", code, re.M)
    return list(dict.fromkeys(names))


def prose(comment):
    """A comment's text as Markdown."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in re.sub(r"^/\*|\*/$", "", comment.strip()).split("\n")]
    lines[0] = lines[0].strip()
    out, block = [], False
    for line in lines:
        formula = line.startswith("  ") and line.strip()
        if formula and not block or block and not formula:
            out.append("")
        block = bool(formula)
        if formula:
            out.append("    " + line.strip())
            continue
        line = re.sub(r"([*_<>\[\]])", lambda m: {"<": "&lt;", ">": "&gt;"}.get(m[1], "\\" + m[1]), line)
        out.append(line)
    return "\n".join(out)


def pieces(lines):
    """(comment, code) pairs of a section: a comment and the declarations that follow it without a blank line."""
    i, found = 0, []
    while i < len(lines):
        comment, code = [], []
        if lines[i].startswith("/*"):
            while True:
                comment.append(lines[i])
                i += 1
                if "*/" in comment[-1]: break
        depth = 0
        while i < len(lines) and (lines[i].strip() or depth) and not (depth == 0 and lines[i].startswith("/*")):
            depth += lines[i].count("{") - lines[i].count("}")
            code.append(lines[i])
            i += 1
        if comment or code: found.append(("\n".join(comment), "\n".join(code)))
        elif i < len(lines): i += 1
    return found


def linked(text, known, here):
    """Names of the header become links to where they are declared, outside of indented blocks."""
    def link(m):
        plain = m[0].replace("\\", "")
        return f"[{m[0]}](#{plain})" if plain in known and plain not in here else m[0]
    return "\n".join(line if line.startswith("    ") else re.sub(r"\b(?:hk|HK)\\_(?:\w|\\_)+", link, line) for line in text.split("\n"))


def sections(text):
    """(title, comment below it, lines) of each part of the header."""
    text = text[text.index("#endif", text.index('extern "C"')):].split("\n", 1)[1]
    title, comment, lines = "Versions", "", []
    rows = iter(text.split("\n"))
    for row in rows:
        banner = BANNER.match(row)
        if not banner:
            if not row.startswith(("#if", "#else", "#endif", "#ifdef", "}")) or row.startswith("} hk_"): lines.append(row)
            continue
        yield title, comment, lines
        title, comment, lines = banner[1].rstrip("*/ ").strip(), "", []
        while "*/" not in row:
            row = next(rows)
            comment += row + "\n"
    yield title, comment, lines


def page(path):
    text = path.read_text(encoding="utf-8")
    opening = text[:text.index("*/") + 2]
    known = {name for _, _, lines in sections(text) for _, code in pieces(lines) for name in declared(code)}
    out = [f"# {path.name}", "", linked(prose(opening), known, []), ""]
    for title, comment, lines in sections(text):
        found = pieces(lines)
        if not any(declared(code) for _, code in found): continue
        out += [f"## {title[0].upper() + title[1:]}", ""]
        if comment.strip(" */\n"): out += [linked(prose("/*" + comment), known, []), ""]
        for said, code in found:
            names = declared(code)
            if names:
                head = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
                out += ["".join(f'<a id="{n}"></a>' for n in names), "", "### " + head, ""]
            if said: out += [linked(prose(said), known, names), ""]
            if code.strip(): out += ["```c", code.strip("\n"), "```", ""]
    return "\n".join(out)
