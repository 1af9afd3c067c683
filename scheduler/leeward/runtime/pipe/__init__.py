"""Between Storm's worker and the user's code: the pipe, its two forms, the loop of a bolt, and what it emits."""
