"""Key groups on their way from task to task while both go on working."""
