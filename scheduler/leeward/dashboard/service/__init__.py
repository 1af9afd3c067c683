"""The page of the service: topologies over the nodes, figures, plans, reconfigurations; acts with the token."""
