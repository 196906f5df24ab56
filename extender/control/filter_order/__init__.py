"""Order without gates: `filter` answers from the same plan and refuses who is not in turn; who is gets woken."""
