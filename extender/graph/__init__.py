"""In which order the tasks of one job should start, found from its whole DAG (Graphene, 4 and 6).

Belongs here: DAGs, bounds on how long they take, placements of tasks on machines over time, and the orders that follow.
Never here: nodes and pods, queues, the policy, clocks, files or chance without a seed. It imports numpy and nothing of
the service but `arrays` and `errors`.
"""

from extender.graph.bounds import Bounds, bounds_of
from extender.graph.building import StageOrder, build
from extender.graph.dag import Dag, Machines, Parent, Stage

__all__ = ["Bounds", "Dag", "Machines", "Parent", "Stage", "StageOrder", "bounds_of", "build"]
