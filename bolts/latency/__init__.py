"""How long results take from source to sink, for applications whose pulses cut their results.

A pulse leaves the source just before the input that closes its interval, and that input is the last one that the
results of the pulse need. So the pulse carries the wall clock of that moment, `w0`, and no tuple does; the sink notes
it as `sent`, and when it had the result as `received`. No operator in between reads it, and results are the same with
and without.

`settings` has the options `latency.*`; `made` gives a source its inputs at a rate, `taxi` makes rows of taxi trips;
`notes` writes the sink's file.
"""
