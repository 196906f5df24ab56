"""Pages of the documentation that are written from the code: `python -m docs.generate`. A test says when one is old."""
