"""Dynamic dataflow between living nodes: JOINs, operators and their loads in the overlay's messages. Pure."""
