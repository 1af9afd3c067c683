"""Planning: the model as arrays that change with each query that is placed or removed."""
