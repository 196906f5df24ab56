"""The service's commands, one file each: options in, one call of `app`, what to print and the exit code out.

Belongs here: names of commands and options, their help, exit codes. Never here: reading a cluster (`inspection`).
What a command needs is imported when it runs, so that help and completion come at once.
"""
