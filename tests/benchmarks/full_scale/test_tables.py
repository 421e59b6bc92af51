"""Tables of a full-scale run: one size in full, several beside each other."""

from benchmarks.full_scale.stage import Cost
from benchmarks.full_scale.tables import growth, table


def test_a_row_per_stage_a_column_per_rank() -> None:
    costs = [
        Cost("generate", 1.25, 1.0, {"": 70_000_000}, 70_000_000, 7_000_000),
        Cost("first start", 22.04, 16.5, {"": 20_000_000, "0": 215_400_000, "1": 228e6}, 463_400_000, 77e6, 21.7),
    ]
    head, _, *rows = table("drrag", 0.1, costs).splitlines()[4:]
    assert head.split(" | ")[4:] == ["rank 0, MB", "rank 1, MB", "all processes, MB", "mapped files, MB |"]
    assert rows == [
        "| generate | 1.2 | 1.0 |  |  |  | 70 | 7 |",
        "| first start | 22.0 | 16.5 | 21.7 | 215 | 228 | 463 | 77 |",
    ]


def test_growth_compares_the_largest_share_with_the_smallest() -> None:
    small = [Cost("first start", 10.0, 8.0, {"0": 100_000_000}, 100_000_000, 0, 9.0)]
    large = [
        Cost("generate", 3.0, 3.0, {}, 0, 0),
        Cost("first start", 25.0, 40.0, {"0": 150_000_000}, 150_000_000, 0, 18.0),
    ]
    rows = growth("rerag", {1.0: large, 0.01: small}).splitlines()[4:]
    assert rows == [
        "| first start | seconds | 10.0 | 25.0 | 2.5 |",
        "| first start | core-seconds | 8.0 | 40.0 | 5.0 |",
        "| first start | to the first step, s | 9.0 | 18.0 | 2.0 |",
        "| first start | largest process group, MB | 100.0 | 150.0 | 1.5 |",
        "| generate | seconds |  | 3.0 |  |",
        "| generate | core-seconds |  | 3.0 |  |",
        "| generate | largest process group, MB |  | 0.0 |  |",
    ]
