"""Spark's types as trees, and the differences between two sets of columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.schema.differences import Kind, differences
from spark_jobs.schema.types import Array, Map, Struct, Type, parse

_SCALARS = [
    *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary"),
    *("date", "timestamp", "timestamp_ntz"),
]
_DECIMALS = st.integers(1, 38).flatmap(
    lambda digits: st.integers(0, digits).map(lambda scale: f"decimal({digits},{scale})")
)
_NUMBERS = st.sampled_from(_SCALARS[:6]) | _DECIMALS
_NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(
    lambda name: name == name.strip()
)
_TYPES: st.SearchStrategy[Type] = st.recursive(
    st.sampled_from(_SCALARS) | _DECIMALS,
    lambda inner: st.one_of(
        inner.map(Array),
        st.builds(Map, inner, inner),
        st.dictionaries(_NAMES, inner, max_size=3).map(lambda named: Struct(tuple(named.items()))),
    ),
    max_leaves=5,
)


def fits(found: Type, wanted: Type) -> bool:
    """Return if every value of the type `found` is also a value of the type `wanted`, unchanged."""
    return all(each.kind is Kind.WIDENING for each in differences(found, wanted))


@given(_TYPES)
def test_a_type_is_read_as_it_was_written(type_: Type) -> None:
    """A type's text is parsed to that type, with any characters in its names."""
    assert parse(str(type_)) == type_


@pytest.mark.parametrize(
    "text",
    [
        "",
        "array",
        "array<int",
        "int>",
        "struct<a>",
        "struct<a:>",
        "map<int>",
        "struct<a:int",
        "`a`",
    ],
)
def test_a_malformed_type_is_refused(text: str) -> None:
    """An incomplete or malformed type raises ValueError, and nothing else."""
    with pytest.raises(ValueError, match=r"type|expected"):
        parse(text)


def test_a_types_case_and_spaces_do_not_matter() -> None:
    """Case and spaces in a type do not matter."""
    assert parse("STRUCT< a: Decimal( 10, 2 ), `b`:INT >") == parse("struct<a:decimal(10,2),b:int>")


@given(_TYPES)
def test_every_type_fits_itself(type_: Type) -> None:
    """A type has no difference from itself, unless two names differ only by case."""
    kinds = {each.kind for each in differences(type_, type_)}
    assert not kinds or Kind.DUPLICATE in kinds


@given(_NUMBERS, _NUMBERS, _NUMBERS)
def test_fitting_is_transitive(small: str, middle: str, large: str) -> None:
    """If one type fits a second and this fits a third, the first fits the third."""
    if fits(small, middle) and fits(middle, large):
        assert fits(small, large)


@given(_NUMBERS, _NUMBERS)
def test_only_equal_types_fit_both_ways(one: str, other: str) -> None:
    """Two different types never fit each other in both directions."""
    assert one == other or not (fits(one, other) and fits(other, one))


@pytest.mark.parametrize(
    ("found", "wanted", "kind"),
    [
        ("int", "bigint", Kind.WIDENING),
        ("int", "double", Kind.WIDENING),
        ("smallint", "float", Kind.WIDENING),
        ("float", "double", Kind.WIDENING),
        ("decimal(9,2)", "decimal(12,2)", Kind.WIDENING),
        ("decimal(9,2)", "decimal(12,4)", Kind.WIDENING),
        ("int", "decimal(12,2)", Kind.WIDENING),
        ("decimal(18,0)", "bigint", Kind.WIDENING),
        ("decimal(15,0)", "double", Kind.WIDENING),
        ("bigint", "int", Kind.LOSSY),
        ("bigint", "double", Kind.LOSSY),
        ("int", "float", Kind.LOSSY),
        ("double", "float", Kind.LOSSY),
        ("decimal(18,4)", "decimal(10,2)", Kind.LOSSY),
        ("decimal(12,2)", "decimal(12,4)", Kind.LOSSY),
        ("decimal(20,0)", "bigint", Kind.LOSSY),
        ("decimal(3,1)", "double", Kind.LOSSY),
        ("timestamp_ntz", "timestamp", Kind.LOSSY),
        ("timestamp", "date", Kind.LOSSY),
        ("string", "int", Kind.IMPOSSIBLE),
        ("int", "string", Kind.IMPOSSIBLE),
        ("binary", "string", Kind.IMPOSSIBLE),
        ("boolean", "int", Kind.IMPOSSIBLE),
        ("array<int>", "int", Kind.IMPOSSIBLE),
        ("array<int>", "map<int,int>", Kind.IMPOSSIBLE),
    ],
)
def test_types_differ_in_one_of_three_ways(found: str, wanted: str, kind: Kind) -> None:
    """Types widen, lose values in a cast, or have no sensible cast."""
    assert [each.kind for each in differences(parse(found), parse(wanted))] == [kind]


def test_nested_places_are_named() -> None:
    """Differences within structs, arrays and maps have a path, by name without case."""
    found = parse("struct<A:struct<x:int,more:int>,l:array<struct<n:string>>,m:map<string,int>>")
    wanted = parse("struct<a:struct<X:bigint,y:date>,l:array<struct<n:int>>,m:map<string,bigint>>")
    assert {(each.name, each.kind) for each in differences(found, wanted)} == {
        ("a.X", Kind.WIDENING),
        ("a.y", Kind.MISSING),
        ("a.more", Kind.EXTRA),
        ("l[].n", Kind.IMPOSSIBLE),
        ("m{value}", Kind.WIDENING),
    }


def test_names_that_differ_in_case_are_duplicates() -> None:
    """Two columns whose names differ only in case are one duplicate."""
    found, wanted = parse("struct<a:int,A:int,s:struct<x:int,X:int>>"), parse("struct<a:int,s:int>")
    assert [e.name for e in differences(found, wanted) if e.kind is Kind.DUPLICATE] == ["a"]
    nested = differences(found, parse("struct<a:int,s:struct<x:int>>"))
    assert [e.name for e in nested if e.kind is Kind.DUPLICATE] == ["a", "s.x"]


def test_values_without_a_type_are_not_compared() -> None:
    """Text cells, and columns with only nulls, fit any type."""
    assert fits("", parse("struct<a:int>"))
    assert fits("void", "int")
