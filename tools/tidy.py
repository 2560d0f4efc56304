"""Checks our own rules of code, as a function over (path, source). A unit test runs it on all files.

The rules say who may import whom (the table ROOMS), who may use entropy, time or the database (ENTITLED), where SQL may
stand and how it is written, how long a file may be, and which names are too vague. A file in no room is a finding too.
The checks read only the syntax tree. They see an import by a constant name (`importlib.import_module("rgs.cli")`), but
not one by a name that is put together at run time.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import Final

from tools.syntax import nodes_of
from tools.words import check_names, check_prose

MAX_LINES: Final = 500
LONG_FILES: Final = {"rgs/integrity/manifest_verify.py", "tests/verifier/independent_verifier.py"}
"""Verifiers for outsiders. Each is one file by design, so that it can be read and copied alone."""
GENERATED_FILES: Final = ("rgs/v1/", "rgs/wallet/", "rgs/regulator/")
GENERATED_MODULE: Final = re.compile(r"rgs(\.\w+)?\.v\d+(\.|$)")
PROJECT: Final = {"rng", "rgs", "certification", "examples", "bench", "tests", "tools"}
PRODUCT: Final = ("rng/", "rgs/", "certification/", "examples/")


@dataclass(frozen=True, order=True)
class Finding:
    """A broken rule, with place and details."""

    path: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


Rule = Iterator[tuple[int, str, str]]  # line, rule, what

# --- who may import whom -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Room:
    """The imports allowed below `prefix`, besides the standard library. The longest prefix that fits applies."""

    prefix: str
    ours: tuple[str, ...] = ()  # modules (with all below) or single names of ours
    libraries: tuple[str, ...] | None = ()  # libraries; None: any
    generated: bool = False  # the code made from protos/


SIGNING: Final = ("cryptography", "nacl")
GRPC: Final = ("grpc", "grpc_health", "grpc_reflection", "grpc_status", "google")
INNER: Final = ("rgs.core", "rgs.observe", "rgs.ports", "rgs.store")
SHARED: Final = tuple(
    f"rgs.service.{name}"
    for name in (
        *("availability", "callers", "cosigned", "events", "game_catalog", "generators", "idempotency", "instance"),
        *("pages", "roles", "sealing", "table_statements", "timekeeping"),
    )
)
"""What several subjects of the service use. It imports none of them."""
LOG: Final = tuple(
    f"rgs.tlog.{name}"
    for name in (
        "cosigning",
        "directory",
        "gap",
        "keybundle",
        "published",
        "sequencer",
        "shard",
        "witnesses",
    )
)
"""The log, without the witness, which has a folder in it."""
ROWS: Final = tuple(f"rgs.store.interface.{name}" for name in ("DayTotalsRow", "PartyRow", "StatementRow", "TotalsRow"))
"""Rows of the store that use cases return as they are. They are values and give no access to the store."""
USE_CASES: Final = ("rng", *INNER, *SHARED)
PROCESS: Final = (
    *("rng", *INNER, "rgs.adapters", "rgs.tlog", "rgs.service", "rgs.api", "rgs.integrity"),
    "rgs.__version__",
)

# From the inside out: a room names itself and rooms that stand before it (`climbs`).
ROOMS: Final = (
    Room("rng/", ("rng",)),
    Room("rgs/__init__.py"),
    # The measured start imports only the standard library, before anything is trusted. Its launcher is at the end.
    Room("rgs/integrity/", ("rgs.integrity",)),
    # The C2SP formats, usable alone.
    Room("rgs/core/tlog/", ("rgs.core.tlog",), SIGNING),
    Room("rgs/core/", ("rgs.core",)),
    Room("rgs/core/statements/", ("rgs.core",), SIGNING),
    Room("rgs/core/replay/", ("rgs.core", "rng.shuffle")),
    # What is watched of a process, outside the certified core. It is told everything, and asks nobody.
    Room("rgs/observe/", ("rgs.observe",)),
    Room("rgs/ports/", ("rgs.core", "rgs.ports")),
    Room("rgs/store/", INNER, ("asyncpg", "duckdb")),
    Room("rgs/adapters/__init__.py"),
    Room(
        "rgs/adapters/grpc/",
        ("rgs.core", "rgs.observe", "rgs.ports", "rgs.adapters.grpc"),
        ("structlog", *GRPC),
        generated=True,
    ),
    Room("rgs/adapters/embedded/", (*INNER, "rgs.adapters.embedded")),
    # A separate program for those who watch the server. It and the log that it watches do not import each other.
    Room("rgs/tlog/witness/", ("rgs.core", "rgs.store", "rgs.tlog.witness"), ("structlog",)),
    Room("rgs/tlog/", ("rgs.core", "rgs.store", *LOG), ("structlog",)),
    Room("rgs/service/sealing.py", ("rgs.core",), ("cryptography",)),
    Room("rgs/service/", USE_CASES, ("structlog",)),
    Room("rgs/service/money/", (*USE_CASES, "rgs.service.money"), ("structlog",)),
    Room("rgs/service/regulator/", (*USE_CASES, "rgs.service.regulator"), ("structlog",)),
    Room(
        "rgs/service/play/",
        (*USE_CASES, "rgs.service.money", "rgs.service.regulator", "rgs.service.play"),
        ("structlog",),
    ),
    Room(
        "rgs/service/admin/",
        (*USE_CASES, *LOG, "rgs.service.regulator", "rgs.service.play", "rgs.service.admin"),
        ("structlog",),
    ),
    Room(
        "rgs/service/tables/",
        (*USE_CASES, "rgs.service.play", "rgs.service.admin", "rgs.service.tables"),
        ("structlog",),
    ),
    Room("rgs/service/support/", (*USE_CASES, "rgs.service.money", "rgs.service.play", "rgs.service.support")),
    Room("rgs/service/audit/", (*USE_CASES, *LOG, "rgs.service.admin", "rgs.service.audit"), ("structlog",)),
    Room(
        "rgs/service/reconciliation/",
        (*USE_CASES, "rgs.service.admin.orders", "rgs.service.reconciliation"),
        ("cryptography", "jinja2", "structlog"),
    ),
    Room(
        "rgs/api/", ("rgs.core", "rgs.observe", *ROWS, "rgs.service", "rgs.api"), ("structlog", *GRPC), generated=True
    ),
    Room(
        "rgs/node/",
        (*PROCESS, "rgs.node"),
        ("pkcs11", "prometheus_client", "structlog", "uvloop", *SIGNING, *GRPC),
        generated=True,
    ),
    Room(
        "rgs/devkit/",
        (
            *(*INNER, "rgs.adapters", "rgs.node", "rgs.devkit"),
            *("rgs.integrity.isolation", "rng.entropy"),  # how a server is started; the source of request ids
        ),
        ("rich", "structlog", *GRPC),
        generated=True,
    ),
    Room(
        "certification/",
        ("rng", "rgs.core", "rgs.integrity", "certification"),
        ("jinja2", "matplotlib", "numba", "numpy", "rich", "scipy", "typer"),
    ),
    Room(
        "rgs/cli/",
        (
            *(*PROCESS, "rgs.node", "rgs.devkit", "rgs.cli"),
            *("certification.dispute", "certification.dispute_page"),  # where installed: the page of a complaint
        ),
        ("rich", "structlog", "typer", *SIGNING, *GRPC),
        generated=True,
    ),
    Room("rgs/integrity/launcher.py", ("rgs.integrity", "rgs.cli")),
    Room("rgs/__main__.py", ("rgs.integrity",)),
    Room("examples/", ("examples",), None, generated=True),
    *(Room(prefix, tuple(PROJECT), None, generated=True) for prefix in ("bench/", "tests/", "tools/")),
)
ENTRANCES: Final = ("rgs/integrity/launcher.py", "rgs/__main__.py")
"""Where a process begins. Only these import the command line. No other product code imports these."""
OUTSIDE: Final = ("examples/", "bench/", "tests/", "tools/")
"""The product imports none of these. They may import anything."""

# Parts of the standard library that do input or output, or wait. The core only computes.
NOT_IN_CORE: Final = {
    *("asyncio", "concurrent", "http", "logging", "multiprocessing", "os", "select", "selectors", "shutil", "signal"),
    *("socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "urllib"),
}
NOT_CALLED_IN_CORE: Final = {"eval", "exec", "input", "open", "print"}


# --- who may ask for entropy, time, the database -----------------------------------------------------------------


@dataclass(frozen=True)
class Entitled:
    """Names that, within rng and rgs, only the files below `prefixes` may reach."""

    names: tuple[str, ...]
    prefixes: tuple[str, ...] = ()


ENTITLED: Final = (
    Entitled(("random",)),
    Entitled(("secrets", "os.urandom", "os.getrandom", "ssl.RAND_bytes", "nacl.utils.random"), ("rng/entropy.py",)),
    Entitled(tuple(f"uuid.uuid{version}" for version in (1, 4, 6, 7))),  # ids come from rng.entropy
    Entitled(
        ("time",),  # the clock, displays of progress, and timeouts of outside connections
        ("rgs/node/clock.py", "rgs/node/log_server.py", "rgs/node/stderr.py", "rgs/cli/", "rgs/devkit/"),
    ),
    Entitled(
        ("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
        ("rgs/node/clock.py",),
    ),
    Entitled(("sqlite3", "asyncpg", "duckdb"), ("rgs/store/",)),
    Entitled(("importlib.import_module", "builtins.__import__", "runpy"), ("rgs/node/parts.py",)),
)
ENTROPY_DEVICES: Final = ("/dev/urandom", "/dev/random", "/dev/hwrng")


BY_NAME: Final = {
    *("builtins.__import__", "importlib.import_module", "rgs.node.parts.part", "runpy.run_module"),
}
"""Functions that import the module named in their first argument."""


# --- SQL ---------------------------------------------------------------------------------------------------------

SQL: Final = re.compile(
    r"""\s*(?:
        (?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|TRUNCATE|REPLACE|WITH|PRAGMA|ATTACH|SAVEPOINT|RELEASE|ROLLBACK)\s
      | (?:BEGIN|COMMIT|VACUUM)\b
      | (?i:select\s.+\sfrom\s | insert\s+into\s | update\s+\S+\s+set\s | delete\s+from\s | pragma\s+\w+\s*[=(;]
          | (?:create|alter|drop)\s+(?:temp\w*\s+|unique\s+)?(?:table|index|view|trigger)\s+\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
SQL_ROOMS: Final = ("rgs/store/", "examples/operator/operator_platform/store/")
"""Where SQL lies: that of the server, and that of the reference operator's own files."""
SQL_CLAUSE: Final = re.compile(
    r"\b(?:FROM|INTO|JOIN|LIMIT|ORDER BY|PRAGMA|RETURNING|SAVEPOINT|SELECT|SET|VALUES|WHERE)\b"
)

# --- names -------------------------------------------------------------------------------------------------------

EMPTY_WORDS: Final = {word + ending for word in ("util", "helper", "manager", "handler") for ending in ("", "s")}
WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def check(path: str, source: str) -> list[Finding]:
    """All findings of one file. `path` is relative to the repository, with slashes; only Python is read as a tree."""
    if path.startswith(GENERATED_FILES):
        return []
    findings = set(check_text(path, source)) | {Finding(path, *found) for found in check_prose(path, source)}
    if path.endswith(".py"):
        tree = ast.parse(source, path)
        findings |= {
            Finding(path, line, rule, what)
            for rule_of in (check_imports, check_entitled, check_core, check_sql, check_classes, check_names)
            for line, rule, what in rule_of(path, tree)
        }
    return sorted(findings)


def check_text(path: str, source: str) -> Iterator[Finding]:
    """Length, file names, and where files of SQL may lie."""
    if (lines := source.count("\n")) > MAX_LINES and path not in LONG_FILES:
        yield Finding(path, lines, "file length", f"{lines} lines; at most {MAX_LINES} are allowed")
    for part in PurePosixPath(path).parts:
        if words := EMPTY_WORDS & set(PurePosixPath(part).stem.lower().split("_")):
            yield Finding(path, 1, "empty name", f"{part} says {', '.join(words)}; say what it holds")
    if path.endswith(".sql") and not path.startswith("rgs/store/"):
        yield Finding(path, 1, "SQL outside the store", "all SQL lies in rgs/store")


def check_imports(path: str, tree: ast.Module) -> Rule:
    """The import table."""
    room = room_of(path)
    if room is None:
        yield 1, "no room", "no room of the import table holds this file (tools/tidy.py, ROOMS)"
        return
    for line, target in imports(path, tree):
        top = target.split(".")[0]
        if top not in PROJECT:
            if top in sys.stdlib_module_names or room.libraries is None or top in room.libraries:
                continue
            yield line, "import", f"{room.prefix} may not import the library {top}"
        elif GENERATED_MODULE.match(target):
            if not room.generated:
                yield line, "generated code", f"{room.prefix} may not import {target}"
        elif not any(reaches(target, allowed) for allowed in room.ours):
            yield line, "import", f"{room.prefix} may not import {target}"
        elif not path.startswith((*ENTRANCES, *OUTSIDE)) and any(reaches(target, module_of(way)) for way in ENTRANCES):
            yield line, "import", f"{target} begins a process: only {' and '.join(ENTRANCES)} may import it"


def check_cycles(sources: Mapping[str, str]) -> list[Finding]:
    """The first circle of imports that is found between the files (path to source).

    `TYPE_CHECKING` blocks and imports inside functions count. An import from another package runs its `__init__`, too.
    """
    modules = {module_of(path): path for path in sources if not path.startswith(GENERATED_FILES)}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        graph[module] = set()
        for _, target in imports(path, ast.parse(sources[path], path)):
            names = [target.rsplit(".", cut)[0] for cut in range(target.count(".") + 1)]
            found = [name for name in names if name in modules and name != module]
            graph[module].update(found[:1], (name for name in found[1:] if not reaches(module, name)))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]  # from importer to imported
        return [Finding(modules[circle[0]], 1, "import cycle", " -> ".join(circle))]
    return []


def check_entitled(path: str, tree: ast.Module) -> Rule:
    """Check that randomness, time, database and hidden imports are used only in their one place."""
    if not path.startswith(("rng/", "rgs/")):
        return
    for line, target in used_names(path, tree):
        for entitled in ENTITLED:
            if any(reaches(target, name) for name in entitled.names) and not path.startswith(entitled.prefixes or "\0"):
                yield line, "not entitled", f"{target} belongs to {' '.join(entitled.prefixes) or 'nobody'}"
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and node.value in ENTROPY_DEVICES and path != "rng/entropy.py":
            yield node.lineno, "not entitled", f"{node.value} belongs to rng/entropy.py"


def check_core(path: str, tree: ast.Module) -> Rule:
    """Check that the core has no input, output or waiting."""
    if not path.startswith("rgs/core/"):
        return
    for line, target in imports(path, tree):
        if target.split(".")[0] in NOT_IN_CORE:
            yield line, "core", f"the core may not import {target}"
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NOT_CALLED_IN_CORE:
            yield node.lineno, "core", f"the core may not call {node.func.id}()"


def check_sql(path: str, tree: ast.Module) -> Rule:
    """Check that SQL is only in rgs/store, and that it is never put together from values."""
    if not path.startswith(PRODUCT):
        return
    prose = {id(node.value) for node in nodes_of(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in nodes_of(tree):
        if not isinstance(node, ast.expr):
            continue
        text = text_of(node)
        if not path.startswith(SQL_ROOMS):
            if SQL.match(text) and id(node) not in prose:
                yield node.lineno, "SQL outside the store", "all SQL lies in rgs/store"
        elif isinstance(node, ast.JoinedStr) and (SQL.match(text) or SQL_CLAUSE.search(text)):
            yield node.lineno, "f-string in SQL", "values are bound as parameters"
        elif SQL.match(formatted_text(node)):
            yield node.lineno, "f-string in SQL", "neither % nor format(): values are bound as parameters"


def check_classes(_path: str, tree: ast.Module) -> Rule:
    """Check that error classes end in Error, and that no class name is vague."""
    for node in nodes_of(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        if words := EMPTY_WORDS & {word.lower() for word in WORD.findall(node.name)}:
            yield node.lineno, "empty name", f"class {node.name} says {', '.join(words)}; say what it holds"
        bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases]
        if any(base.endswith(("Error", "Exception")) for base in bases) and not node.name.endswith("Error"):
            yield node.lineno, "error name", f"class {node.name} is an error and does not end in Error"


# --- no climbing --------------------------------------------------------------------------------------------------


def climbs(rooms: Sequence[Room] = ROOMS) -> list[str]:
    """Find rooms that may import a later room. The table goes from the inside out, and imports must go inwards."""
    found = []
    for place, room in enumerate(rooms):
        if room.prefix.startswith(OUTSIDE):
            continue
        before = [other.prefix for other in rooms[: place + 1]]
        found += [
            f"{room.prefix} may import {name}, which stands further out"
            for name in room.ours
            if not any(prefix in before for prefix in holders(name, rooms)) and name != "rgs.__version__"
        ]
    return found


def holders(name: str, rooms: Sequence[Room] = ROOMS) -> list[str]:
    """The prefixes of the rooms below a dotted name, or else of the room that holds it."""
    path = name.replace(".", "/")
    below = [room.prefix for room in rooms if room.prefix.startswith((f"{path}/", f"{path}.py"))]
    return below or [prefix for prefix in [room_prefix(f"{path}.py", rooms)] if prefix]


def room_prefix(path: str, rooms: Sequence[Room]) -> str:
    """The prefix of the room of a path; the file need not exist."""
    return max((room.prefix for room in rooms if path.startswith(room.prefix)), key=len, default="")


# --- reading the tree --------------------------------------------------------------------------------------------


def room_of(path: str) -> Room | None:
    """The room that holds a file."""
    rooms = [room for room in ROOMS if path.startswith(room.prefix)]
    return max(rooms, key=lambda room: len(room.prefix), default=None)


def reaches(target: str, name: str) -> bool:
    """Whether a dotted target is `name` or something in it."""
    return target == name or target.startswith(name + ".")


@lru_cache(maxsize=1)  # three rules ask in turn
def imports(path: str, tree: ast.Module) -> tuple[tuple[int, str], ...]:
    """All imported modules and names, absolute: `from a.b import c` is a.b.c, and `import_module("a.b")` is a.b."""
    return tuple(_imports(path, tree))


def _imports(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    bound = bindings(path, tree)
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{absolute(path, node)}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and bound_name(node.func, bound) in BY_NAME:
            named = [*node.args[:1], *(keyword.value for keyword in node.keywords)]
            yield from ((node.lineno, text) for argument in named[:1] if (text := text_of(argument)))


def absolute(path: str, node: ast.ImportFrom) -> str:
    """The module that an import statement names, with leading dots resolved."""
    package = PurePosixPath(path).parts[:-1]
    base = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join((*base, *([node.module] if node.module else [])))


def module_of(path: str) -> str:
    """The module name of a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def used_names(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """All imports, and attribute chains that begin with an imported name: `import os as o; o.urandom`."""
    yield from imports(path, tree)
    bound = bindings(path, tree)
    for node in nodes_of(tree):
        if isinstance(node, ast.Attribute | ast.Name) and (name := bound_name(node, bound)):
            yield node.lineno, name


@lru_cache(maxsize=1)  # three rules ask in turn
def bindings(path: str, tree: ast.Module) -> Mapping[str, str]:
    """The names that imports bind, each with the dotted name that it stands for."""
    bound = {"__import__": "builtins.__import__"}
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]  # what `import a.b` binds
                bound[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            bound |= {alias.asname or alias.name: f"{absolute(path, node)}.{alias.name}" for alias in node.names}
    return bound


def bound_name(node: ast.expr, bound: Mapping[str, str]) -> str:
    """The dotted name that a name or an attribute chain stands for; empty if no import binds it."""
    root, _, rest = ast.unparse(node).partition(".")
    if root not in bound:
        return ""
    return f"{bound[root]}.{rest}" if rest else bound[root]


def text_of(node: ast.AST) -> str:
    """The text of a string constant, or of an f-string with a question mark for each value; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "?" for part in node.values)
    return ""


def formatted_text(node: ast.AST) -> str:
    """The template of `"…" % values` or `"…".format(values)`; "" for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return text_of(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("format"):
        return text_of(node.func.value)
    return ""
