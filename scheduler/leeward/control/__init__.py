"""The scheduler service: monitor, analyse, plan, execute. It knows the world through `ports` alone."""
