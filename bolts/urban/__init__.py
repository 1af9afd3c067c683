"""Urban sensing: pollution, dust, light, sound, temperature and humidity of seven cities, and an index of each city.

The cities report in turn, and the sensors of a city in turn, each sensor once in a minute of data time, all six kinds
in one line. The definition:

- a value that is missing, is no number or lies outside the range of its kind is dropped and counted by its reason; the
  other values of the report count;
- a sensor's value of a kind is smoothed: the first is taken as it is, each further one moves it by a quarter of the
  distance, in the order of the reports;
- at data time t a city has, for each kind, the count, mean, least and greatest of the smoothed values of the reports in
  [t - window_s, t);
- the index of a city is the worst of its kinds: 0 where the mean is in the comfortable middle of its kind, 100 where it
  is as far away as its band reaches. A city is on alert at the third result in a row whose index is 70 or more.

There is one source: pulses of several would come between the markers of a handover in another order on each channel,
which no task could align. Values are whole hundredths, so that sums do not depend on the order of their parts.

`reports`, `places` and `index` compute (pure), the operators are thin shells around them; results go where query 1's
do; `reference` computes the same in one process, by other means. DSSP's readings for subtasks are another application
(`bolts.sensing`): there a domain asks, here sensors report.
"""
