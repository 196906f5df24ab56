import numpy as np

from extender.cluster.resources import CPU, DIMENSIONS, MEMORY
from extender.cluster.usage import Sample, Samples, Usage, samples_of


def test_the_arrays_of_samples_are_in_their_order_and_say_what_was_not_measured():
    samples = Samples({"b": Sample({CPU: 3.0}, 1.0, 2.0), "a": Sample({MEMORY: 5.0, CPU: 4.0}, 6.0, 7.0)})
    assert list(samples) == ["b", "a"]
    assert samples.amounts.shape == (2, len(DIMENSIONS))
    assert samples.amounts[:, DIMENSIONS.index(CPU)].tolist() == [3.0, 4.0]
    assert np.isnan(samples.amounts[0, DIMENSIONS.index(MEMORY)])
    assert (samples.since.tolist(), samples.at.tolist()) == ([1.0, 6.0], [2.0, 7.0])


def test_a_look_without_samples_has_empty_arrays():
    assert samples_of(Usage().pods).amounts.shape == (0, len(DIMENSIONS))


def test_arrays_are_made_once():
    usage = Usage(pods={"uid": Sample({CPU: 3.0}, 1.0, 2.0)})
    assert samples_of(usage.pods) is usage.pods
