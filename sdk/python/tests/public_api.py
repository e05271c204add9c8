"""Prints the public API of the SDK as JSON, read from its source: nothing is imported.

    {"names": {NAME: {"kind": "class" or "function", "members": {MEMBER: "field" or "method"}}},
     "constants": {NAME: value}}

names are those of __all__. The members of a class are its annotated fields, what
__init__ sets, its methods and properties, without those that begin with "_", and
those of its bases in the same module. constants are the upper-case names of all
modules whose values are literals; one name with two values has a list of them.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, Iterator, Optional

SDK = Path(__file__).resolve().parent.parent / "switchyard_plugin"


def source(module: str) -> ast.Module:
    return ast.parse((SDK / f"{module}.py").read_text(encoding="utf-8"))


def literal(node: Optional[ast.expr]) -> Any:
    """The value of a literal, or of one shifted to the left; None for anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
        return literal(node.left) << literal(node.right)
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def assigned(module: ast.Module, name: str) -> Any:
    for statement in module.body:
        if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
            return ast.literal_eval(statement.value)
    raise LookupError(name)


def members(module: ast.Module, definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for base in definition.bases:
        for other in module.body:
            if isinstance(other, ast.ClassDef) and isinstance(base, ast.Name) and other.name == base.id:
                yield from members(module, other)
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, "field"
        elif isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            for inner in ast.walk(statement):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target] if isinstance(inner, ast.AnnAssign) else []
                for target in targets:
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                        yield target.attr, "field"
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement.name, "method"


def api() -> dict[str, Any]:
    package = source("__init__")
    places: dict[str, str] = assigned(package, "_PLACES")
    names: dict[str, Any] = {}
    for name in assigned(package, "__all__"):
        if name.startswith("__"):
            continue
        module = source(places[name])
        for statement in module.body:
            if isinstance(statement, ast.ClassDef) and statement.name == name:
                found = {n: k for n, k in members(module, statement) if not n.startswith("_")}
                names[name] = {"kind": "class", "members": found}
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement.name == name:
                names[name] = {"kind": "function", "members": {}}
        if name not in names:
            raise LookupError(f"{places[name]}.py does not define {name}")
    constants: dict[str, Any] = {}
    for path in sorted(SDK.rglob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
                value = literal(statement.value)
                if statement.targets[0].id.isupper() and value is not None:
                    constants.setdefault(statement.targets[0].id, []).append(value)
    return {"names": names, "constants": constants}


if __name__ == "__main__":
    print(json.dumps(api(), indent=1, sort_keys=True))
