"""The house rules: imports point one way, files and functions stay small, the package imports fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "tradespace"
ORDER = [
    "errors",
    "num",
    "step",
    "inputs",
    "workload",
    "network",
    "schedule",
    "cost",
    "predict",
    "explore",
    "views",
    "evidence",
    "frameworks",
    "astra",
    "studies",
    "web",
    "cli",
]
# Display methods hand results to views when they are called; nothing else may look downwards.
# A step's money is worked out when asked for, so that `predict` does not pay for it.
DOWNWARD = {("step.py", "views"), ("explore/plan.py", "views"), ("step.py", "cost"), ("explore/whatif.py", "views")}
FILES = sorted(ROOT.rglob("*.py"))


def room(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tradespace"):
            parts = node.module.split(".")
            found += [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [a.name.split(".")[1] for a in node.names if a.name.startswith("tradespace.")]
    return found


def type_checking_lines(tree: ast.AST) -> set[int]:
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return {line for block in blocks for line in range(block.lineno, (block.end_lineno or block.lineno) + 1)}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    if path.name == "__init__.py" and path.parent == ROOT:
        return
    tree = ast.parse(path.read_text())
    hidden = type_checking_lines(tree)
    visible = [n for n in ast.walk(tree) if not (hasattr(n, "lineno") and n.lineno in hidden)]
    for node in visible:
        for target in imported(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else []:
            assert target in ORDER or target == "__version__", f"{name} imports the unknown room {target}"
            if target == "__version__" or (name, target) in DOWNWARD:
                continue
            assert ORDER.index(target) <= ORDER.index(room(path)), f"{name} imports {target}, which stands below it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 320, f"{path.name} is longer than 320 lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            limit = 60 if path.name == "predict.py" else 45  # predict tells the whole model on one page
            assert length <= limit, f"{path.name}: {node.name} has {length} lines"


def test_every_public_function_has_a_docstring() -> None:
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name} has no docstring"


def test_core_needs_numpy_alone() -> None:
    """Importing the package loads no plotting, terminal, parsing or unit library."""
    code = (
        "import sys, tradespace; "
        "heavy = {'rich', 'altair', 'pint', 'pydantic', 'cyclopts', 'scipy', 'pandas'} & set(sys.modules); "
        "print(','.join(sorted(heavy)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
