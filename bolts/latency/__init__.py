"""How long results take from source to sink, for applications whose pulses cut their results.

A pulse leaves the source just before the input that closes its interval, and that input is the last one that the
results of the pulse need. So the pulse carries the wall clock of that moment, as `sent`, and no tuple does; the sink
notes when it has the result. The wall clock is in nothing but the pulse's data and the sink's file: no operator reads
it, and results are the same with and without.

`settings` has the options `latency.*`; `made` gives a source its inputs at a rate, `taxi` makes rows of taxi trips;
`notes` writes the sink's file; `pins` reads which nodes sources and sinks stand on.
"""
