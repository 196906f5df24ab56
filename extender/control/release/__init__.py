"""The release loop: plan over all that waits, nominate and release those whose turn it is, tidy up what was left.

`loop` is the step from beginning to end; the other modules are its parts.
"""
