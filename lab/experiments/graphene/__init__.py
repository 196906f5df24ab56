"""The experiments of the Graphene paper, by `extender.graph`: single DAGs against the bound (8, tables 5 and 7)."""
