#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that can be read off the source text: rooms, includes, calls, licence lines, lengths, wording.

Prints one line per violation, `path:line: what`, and exits 1 if there is any. Warnings do not fail.
"""
import re
import subprocess
import sys
from pathlib import Path

# Data flows one way. A room includes headers of itself and of the rooms named here, nothing else of src/.
ROOMS = {
    "base": set(),
    "model": {"base"},
    "arch": {"base", "model"},
    "plan": {"base", "model", "arch"},
    "cpu": {"base", "model", "arch", "plan"},
    "jit": {"base", "model", "plan"},
    "gpu": {"base", "model", "arch", "plan", "jit"},
    "engine": {"base", "model", "plan", "cpu", "jit", "gpu"},
    "profile": {"base", "model", "arch", "plan", "cpu", "jit", "gpu", "engine"},
    "trace": {"base", "model"},
    "cost": {"base", "model", "plan", "trace"},
    "report": {"base", "model", "plan", "profile", "trace", "cost"},
    "page": {"base", "model", "plan", "profile", "trace", "cost", "report"},
    "cli": {"base", "model", "arch", "plan", "cpu", "jit", "gpu", "engine", "profile", "trace", "cost", "report", "page"},
}

# A public header belongs to the room that implements it; one not named here is plain data, open to all.
HEADER_ROOMS = {
    "ingot/mlp.h": "model",
    "ingot/plan.h": "plan",
    "ingot/bench.h": "profile",
    "ingot/kernel_name.h": "trace",
    "ingot/explain.h": "trace",
    "ingot/cost.h": "cost",
    "ingot/report.h": "report",
    "ingot/page.h": "page",
}

# Libraries that belong to one room only.
LIBRARY_ROOMS = [
    (re.compile(r"(cuda|nvrtc|nvJitLink|cupti|nvtx|nvToolsExt|cublas|cudnn|curand)\w*(\.h|/.*)$"), "gpu"),
    (re.compile(r"CLI/"), "cli"),
]

# What the operators for PyTorch stand on: PyTorch's stable ABI and Ingot's public headers.
BINDING_HEADERS = re.compile(r"torch/(csrc/stable|headeronly|csrc/inductor/aoti_torch/c)/|ingot/|dlfcn\.h$|[a-z_]+\.h$")

# Calls the library never makes; the command line may.
PRINTS = re.compile(
    r"(?<![\w.>:])(?:std\s*::\s*|::\s*)?"
    r"(?:v?printf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|terminate)\s*\("
    r"|\bv?fprintf\s*\(\s*(?:stdout|stderr)\b|\bf(?:puts|putc|write)\s*\([^;]*\b(?:stdout|stderr)\b"
    r"|\bstd\s*::\s*(?:cout|cerr|clog)\b|\bfmt\s*::\s*v?print(?:ln)?\s*\(")
ENVIRONMENT = re.compile(r"\b(?:secure_)?getenv\s*\(|\benviron\b")
ENVIRONMENT_FILE = "src/base/env.cpp"

STANDARD_HEADERS = set("""
algorithm any array atomic barrier bit bitset charconv chrono cmath compare complex concepts condition_variable
coroutine cstddef cstdint cstdio cstdlib cstring ctime deque exception execution filesystem format forward_list fstream
functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore
set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream
system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
version cassert cctype cerrno cfenv cfloat cinttypes climits clocale csetjmp csignal cstdarg cuchar cwchar cwctype
""".split())

SOURCE_SUFFIXES = {".cpp", ".h", ".cuh", ".cu", ".py", ".sh", ".cmake", ".in", ".html", ".css", ".js"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "run"}
CPP_SUFFIXES = {".cpp", ".h", ".cuh", ".cu"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".json", ".txt", ".toml", ".yml"}
# Recorded or generated data, written by other programs.
DATA_FOLDERS = ("examples/traces/", "tests/data/", "tests/fuzz/corpus/")

SOFT_LINES, HARD_LINES = 400, 600
KERNEL_SOFT_LINES = 600  # device code: one kernel reads better in one piece

# Written in pieces, so that this file passes its own check.
MARKS = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
ISSUE_NUMBERS = re.compile(r"\bissues?\s+#?\d", re.I)
MACHINE_PATHS = re.compile(r"(?<![\w./$}*>-])/(?:wo" r"rk|ro" r"ot|ho" r"me|t" r"mp)/")

# In a document, `src/trace/NAME.cpp` or `tests/*.h` is a pattern; the folder before the open part must exist.
QUOTED_PATH = re.compile(r"`((?:src|include|kernels|arch|bindings|tests|bench|examples|docs|scripts|cmake)/[^`\s]*)`")
OPEN_PART = re.compile(r"[*{<…]|(?:^|_)[A-Z]{4,}(?:[_.]|$)")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# One alternative a token, so that a quote inside a comment or a slash inside a string is not taken for a start.
NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)


def code_only(text):
    """The text with comments and literals blanked; lines keep their numbers."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def project_files(root):
    """Paths relative to root, as git sees them (ignored files left out), or all files where there is no git."""
    if (root / ".git").exists():
        listing = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                 check=True, capture_output=True, text=True).stdout
        names = [name for name in listing.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(name for name in names if not name.startswith("build/") and (root / name).is_file())


def room_of(name):
    """The room a file of src/ or arch/ is in, or None."""
    parts = name.split("/")
    if parts[0] == "arch":
        return "arch"
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def check_public_includes(text):
    for match in INCLUDE.finditer(text):
        target = match[2]
        if target not in STANDARD_HEADERS and not target.startswith("ingot/"):
            yield line_of(text, match.start(2)), f"{target} is neither a standard nor a public header"


def check_includes(text, room):
    if room not in ROOMS:
        yield 1, f"unknown room {room}: give it a line in ROOMS of tests/lint/rules.py"
        return
    for match in INCLUDE.finditer(text):
        target, line = match[2], line_of(text, match.start(2))
        for library, owner in LIBRARY_ROOMS:
            if library.match(target) and room != owner:
                yield line, f"{target} may be included in src/{owner} only"
        if target.startswith("."):
            yield line, f"{target}: include by path from src/"
        other = HEADER_ROOMS.get(target, target.split("/")[0])
        if other in ROOMS and other != room and other not in ROOMS[room]:
            yield line, f"room {room} may not include {target}: data flows the other way"


def check_binding_includes(text):
    for match in INCLUDE.finditer(text):
        if match[2] not in STANDARD_HEADERS and not BINDING_HEADERS.match(match[2]):
            yield line_of(text, match.start(2)), f"{match[2]} is neither of PyTorch's stable ABI nor a public header"


def check_calls(name, text, room):
    code = code_only(text)
    if name != ENVIRONMENT_FILE:
        for match in ENVIRONMENT.finditer(code):
            yield line_of(code, match.start()), f"the environment is read in {ENVIRONMENT_FILE} only"
    if room != "cli":
        for match in PRINTS.finditer(code):
            call = " ".join(match[0].rstrip("( ").split())
            yield line_of(code, match.start()), f"the library never prints or exits: {call}"


def check_text(text):
    for pattern, what in ((MARKS, "unfinished mark"), (MACHINE_PATHS, "path of one machine"),
                          (ISSUE_NUMBERS, "issue number")):
        for match in pattern.finditer(text):
            yield line_of(text, match.start()), f"{what}: {match[0]}"


def check_quoted_paths(known, text):
    for match in QUOTED_PATH.finditer(text):
        path = Path()
        for part in match[1].rstrip("/").split("/"):
            if OPEN_PART.search(part):
                break
            path /= part
        if path not in known:
            yield line_of(text, match.start()), f"no such path: {match[1]}"


def check_source(text):
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.split("\n", 2)[:2]):
        yield 1, "no SPDX line at the top"
    lines = text.count("\n")
    if lines > HARD_LINES:
        yield 1, f"{lines} lines, the ceiling is {HARD_LINES}"


def long_file(name, text):
    """A warning for a file past the soft ceiling, or None."""
    lines = text.count("\n")
    soft = KERNEL_SOFT_LINES if name.startswith("kernels/") else SOFT_LINES
    return f"{lines} lines, aim for at most {soft}" if soft < lines <= HARD_LINES else None


def check(root):
    """All violations and warnings under root, each as (path, line, message)."""
    root = Path(root)
    violations, warnings = [], []
    names = project_files(root)
    known = {Path(name) for name in names}
    known |= {folder for path in known for folder in path.parents}
    for name in names:
        path = root / name
        is_source = path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES
        if name.startswith(DATA_FOLDERS) or not (is_source or path.suffix in TEXT_SUFFIXES):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found = list(check_text(text))
        if path.suffix == ".md":
            found += check_quoted_paths(known, text)
        if is_source:
            found += check_source(text)
            if warning := long_file(name, text):
                warnings.append((name, 1, warning))
        if path.suffix in CPP_SUFFIXES:
            if name.startswith(("include/", "tests/consumer/project/")):
                found += check_public_includes(text)
            if name.startswith("bindings/"):
                found += check_binding_includes(text)
            if name.startswith(("include/", "bindings/")):
                found += check_calls(name, text, None)
            elif room := room_of(name):
                found += check_includes(text, room)
                found += check_calls(name, text, room)
        violations += [(name, line, message) for line, message in found]
    return violations, warnings


def main():
    root = Path(__file__).resolve().parents[2]
    violations, warnings = check(root)
    for name, line, message in warnings:
        print(f"{name}:{line}: warning: {message}")
    for name, line, message in violations:
        print(f"{name}:{line}: {message}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
