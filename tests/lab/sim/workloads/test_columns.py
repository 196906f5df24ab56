import pytest

from extender.errors import TraceError
from lab.sim.workloads.columns import TAB, count, lines, number, positive, read, text, whole, wholes

COLUMNS = {"job": text, "tasks": count, "seconds": positive, "parents": wholes}
TABLE = "job,seconds,tasks,parents\na,1.5,2,\nb,3,1,1;2\n"


def written(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


def test_columns_come_converted_in_the_order_asked_for(tmp_path):
    assert list(read(written(tmp_path, TABLE), COLUMNS)) == [["a", 2, 1.5, ()], ["b", 1, 3.0, (1, 2)]]


def test_tabs_can_separate_columns(tmp_path):
    path = written(tmp_path, TABLE.replace(",", "\t"), "table.tsv")
    assert [row[0] for row in read(path, COLUMNS, delimiter=TAB)] == ["a", "b"]


def test_each_line_says_where_it_is(tmp_path):
    path = written(tmp_path, TABLE)
    assert [where for where, _ in lines(path, COLUMNS)] == [f"{path}, line 2", f"{path}, line 3"]


@pytest.mark.parametrize(
    ("convert", "field", "needed"),
    [
        (whole, "-1", "a whole number, 0 or more"),
        (whole, "1.5", "a whole number, 0 or more"),
        (count, "0", "a whole number, 1 or more"),
        (number, "nan", "a number, 0 or more"),
        (positive, "0", "a number above 0"),
        (positive, "inf", "a number above 0"),
        (wholes, "1;x", "whole numbers, 0 or more, with a semicolon between them"),
    ],
)
def test_a_field_that_cannot_be_converted_is_named_with_what_is_needed(tmp_path, convert, field, needed):
    path = written(tmp_path, f"a,b\n1,{field}\n")
    with pytest.raises(TraceError) as raised:
        list(read(path, {"b": convert}))
    assert str(raised.value) == f"{path}, line 2, column 'b': {field!r}; accepted: {needed}"


def test_a_line_that_is_cut_off_is_named_with_its_first_missing_column(tmp_path):
    path = written(tmp_path, TABLE[:-7])
    with pytest.raises(
        TraceError, match="line 3, column 'tasks': missing; the line has 2 of 4 fields: is the file cut"
    ):
        list(read(path, COLUMNS))


def test_a_line_with_more_fields_than_columns_is_refused(tmp_path):
    path = written(tmp_path, TABLE.replace("1;2", "1,2"))
    with pytest.raises(TraceError, match="line 3, column 'parents': more follows; the line has 5 fields for 4"):
        list(read(path, COLUMNS))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty; a header line with job, tasks, seconds, parents is needed"),
        ("job,seconds,tasks,parents\n", "has a header but no lines; is it cut off?"),
        ("job,tasks\na,1\n", "line 1: no column 'seconds'; found job, tasks"),
    ],
)
def test_a_table_without_its_columns_is_refused(tmp_path, content, says):
    with pytest.raises(TraceError, match=r"table\.csv") as raised:
        list(read(written(tmp_path, content), COLUMNS))
    assert says in str(raised.value)


def test_a_file_that_is_not_there_is_named_with_what_to_do(tmp_path):
    with pytest.raises(TraceError, match=r"none.csv does not exist; say where the traces are with --traces"):
        list(read(tmp_path / "none.csv", COLUMNS))
