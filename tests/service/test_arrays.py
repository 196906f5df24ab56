"""Rows of groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.arrays import rows_by


@given(st.lists(st.integers(-1, 4), max_size=12))
def test_rows_by_group_are_those_that_are_found_one_group_after_the_other(group):
    found = rows_by(np.array(group, dtype=np.intp), 5)
    assert [rows.tolist() for rows in found] == [[row for row, of in enumerate(group) if of == one] for one in range(5)]
