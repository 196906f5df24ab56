"""Evaluating job packing, figures 4 and 5: four measures by four orders, on clusters of traces; rules beside."""
