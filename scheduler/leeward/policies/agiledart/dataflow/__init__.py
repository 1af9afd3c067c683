"""Dynamic dataflow: an overlay's nodes place the operators of an application along the routes of its JOIN messages."""
