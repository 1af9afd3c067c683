"""The routers of a task: choices that become weights of its groupings, and answers of the replicas behind them."""
