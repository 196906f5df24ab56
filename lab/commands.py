"""The commands of the laboratory, which `dovetail` shows where the laboratory is."""

from lab.bench.commands import bench
from lab.controlplane.commands import control_plane
from lab.demo.commands import demo
from lab.experiments.commands import experiment
from lab.packing.commands import packing
from lab.playground.commands import playground
from lab.sim.commands import simulate
from lab.sim.dag.command import graph

COMMANDS = (bench, control_plane, demo, experiment, graph, packing, playground, simulate)
