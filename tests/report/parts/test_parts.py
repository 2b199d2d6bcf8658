"""Every part is complete: its tables explain themselves, its drawings use columns that exist."""

from __future__ import annotations

from grv.report.parts import PARTS, TABLES


def test_tables_have_different_names_and_explain_themselves() -> None:
    assert len(TABLES) == sum(len(part.tables) for part in PARTS)
    for schema in TABLES.values():
        made = schema.table([], ["Nothing."])
        assert made.title
        assert made.caption.endswith(".")
        assert made.alt.endswith(".")
        assert all(column.meaning for column in schema.columns)


def test_every_part_computes_something() -> None:
    for part in PARTS:
        assert part.of_comparison or part.of_log or part.of_logs


def test_drawings_use_columns_that_exist() -> None:
    for schema in TABLES.values():
        own = {column.name for column in schema.columns}
        for drawing in schema.drawings:
            assert {drawing.x.column, drawing.y.column} <= own
            for layer in drawing.layers:
                there = {column.name for column in TABLES[layer.table or schema.name].columns}
                used = [layer.x, layer.y, layer.x2, layer.y2, layer.by, layer.hue]
                used += [layer.where[0]] if layer.where else []
                names = {each for each in used if isinstance(each, str) and each}
                assert names <= {*there, "costs"}
        views = [drawing.view for drawing in schema.drawings]
        assert len(set(views)) == len(views)
