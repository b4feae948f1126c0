"""Pieces of code: one way to write them, patterns that they match, and replacements."""

import ast
import copy
from typing import Any

from grpo_course.classroom.old_check.rules import NAMES

METHODS = ("exp", "expm1", "log", "minimum", "maximum")
WITH_AXIS = (*NAMES["REDUCE"], *NAMES["ALONG"])


def expression(code: str) -> ast.expr:
    return AsMethods().visit(ast.parse(code, mode="eval").body)


def matches(pattern: Any, node: Any, found: dict) -> bool:
    """Whether a node looks like it; what the capitals stand for is noted."""
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1:
        before = found.setdefault(pattern.id, node)
        return isinstance(node, ast.expr) and ast.dump(before) == ast.dump(node)
    if isinstance(pattern, str) and pattern in NAMES:
        return node in NAMES[pattern] and found.setdefault(pattern, node) == node
    if isinstance(pattern, list):
        same_length = len(pattern) == len(node)
        pairs = zip(pattern, node, strict=False)
        return same_length and all(matches(one, other, found) for one, other in pairs)
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            matches(getattr(pattern, name), getattr(node, name), found)
            for name in pattern._fields
            if name != "ctx"
        )
    return type(pattern) is type(node) and pattern == node


def filled(replacement: ast.expr, found: dict) -> ast.expr:
    """A replacement with what the capitals stand for in it."""
    return _Filled(found).visit(copy.deepcopy(replacement))


class _Filled(ast.NodeTransformer):
    def __init__(self, found: dict):
        self.found = found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.found.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self.found.get(node.attr, node.attr)
        return self.generic_visit(node)


class AsMethods(ast.NodeTransformer):
    """torch.exp(x) -> x.exp(), x.sum(-1) -> x.sum(dim=-1), and -1 is one number."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.UnaryOp(
                op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
            ):
                return ast.Constant(-number)
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        if node.func.attr in METHODS and _is_module(node.func.value):
            node.func.value, *node.args = node.args
        if node.func.attr in WITH_AXIS and len(node.args) == 1:
            axis = ast.keyword("dim", node.args.pop())
            node.keywords = [axis, *node.keywords]
        return node


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node) == "torch"
