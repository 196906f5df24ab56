"""Where the pinned programs come from: a folder that the user names, the cache, or a build from their Go modules."""
