from grv.text import aligned


def test_columns_line_up_the_first_to_the_left_the_others_to_the_right() -> None:
    assert aligned(("name", "n"), [("a", "10"), ("long name", "5")]).splitlines() == [
        "name        n",
        "a          10",
        "long name   5",
    ]


def test_a_table_of_nothing_is_its_head() -> None:
    assert aligned(("a", "b"), []) == "a  b"
