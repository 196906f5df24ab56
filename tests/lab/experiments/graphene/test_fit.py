"""The fit of drawn DAGs to the paper's table of simple orders."""

import numpy as np
import pytest

from lab.experiments.graphene import fit
from lab.experiments.graphene.overbooking import TEZ
from lab.experiments.graphene.table7 import PAPER
from lab.sim.workloads.dags import MEANS


def test_the_papers_own_table_misses_nothing_and_a_cell_that_is_off_counts_with_all_others():
    paper = {name: np.array(cells, dtype=float) for name, cells in PAPER.items()}
    assert fit.miss(paper) == 0
    paper["Tetris"][0] += 8.0
    assert fit.miss(paper) == pytest.approx(8 / 32)


def test_a_table_has_all_orders_of_the_paper_beside_tez():
    table = fit.table(0.05, [1], 2)
    assert set(PAPER) < set(table)
    assert table[TEZ].tolist() == [0, 0, 0, 0]


def test_what_is_drawn_is_one_of_the_means_that_were_tried():
    assert MEANS[2] == MEANS[3]
    assert MEANS[2] in fit.TRIED
