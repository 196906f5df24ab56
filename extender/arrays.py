"""The arrays that decisions are made of: their types, and whether a demand fits. Nothing here knows what they mean.

Shapes are said where an array is: [N] nodes, [C] task classes, [J] jobs, [Q] queues, [T] tasks, [R] resources.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
"""Places in other arrays; -1 for none."""
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
