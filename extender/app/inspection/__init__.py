"""A cluster read once for somebody who asks: `explain`, `queues`, `doctor`, `locality`, and `drain`."""
