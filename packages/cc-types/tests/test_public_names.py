import ast
import inspect
from itertools import pairwise

import cc_types


def test_every_field_has_a_description() -> None:
    models = [getattr(cc_types, name) for name in cc_types.__all__ if name != "JsonValue"]
    models = [model for model in models if inspect.isclass(model) and issubclass(model, cc_types.WireModel)]

    undocumented = [
        f"{model.__name__}.{field.target.id}"
        for model in models
        for field, after in pairwise([*class_body(model), ast.Pass()])
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and not is_text(after)
        if field.target.id in model.model_fields
    ]

    assert undocumented == []


def class_body(model: type) -> list[ast.stmt]:
    [definition] = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    return definition.body


def is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
