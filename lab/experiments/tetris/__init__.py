"""Tetris's evaluation (5): what is varied, what is compared with what, and the paper's numbers beside ours."""
