"""What a property says when it does not hold."""


class Broken(BaseException):
    """`what` is broken, in few words that are the same for the same fault; `how` shows this one.

    No Exception, so that no part of the service that goes on after any error goes on after this one.
    """

    def __init__(self, what, how=""):
        super().__init__(f"{what}: {how}" if how else what)
        self.what = what


def require(holds, what, how=""):
    """Raise Broken unless it holds; `how` may be a function, called only then."""
    if not holds:
        raise Broken(what, how() if callable(how) else how)
