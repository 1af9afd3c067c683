"""How a topology names its groupings, and what it is submitted with."""
