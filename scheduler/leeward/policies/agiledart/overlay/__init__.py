"""An overlay without a centre: Pastry's tables, the protocol of one node, zones and their schedulers."""
