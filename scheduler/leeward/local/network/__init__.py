"""The emulated network of a local cluster: a namespace for each node, and a relay that joins them.

`plan` says which namespace, device and address each node has and what the relay is told; `namespaces` makes and
removes them; `relay.c`, with `pipes.c`, carries the packets; `routes` tells it which of them take dedicated links;
`statistics` reads what it counted; `measure` measures what it does; `alone` has all of it without a cluster.
"""
