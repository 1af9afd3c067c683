"""The judge of `make bench-migration`, on logs whose damage is known."""

from __future__ import annotations

from tests.bench.sink_log import Damage, Row, Window, arrival_times, assess, parse

RATE, KEYS = 100, 10


def log(numbers: list[int], *, times: dict[int, float] | None = None, forget_at: int = 0) -> list[Row]:
    """Rows in this order, 100 a second from 1000.0 s; the count begins anew at the number `forget_at`."""
    counts: dict[int, int] = {}
    rows, clock = [], 1000.0
    for n in numbers:
        if n == forget_at:
            counts.clear()
        counts[n % KEYS] = counts.get(n % KEYS, 0) + 1
        clock = (times or {}).get(n, clock + 1 / RATE)
        rows.append(Row(key=n % KEYS, n=n, count=counts[n % KEYS], arrived_s=round(clock, 3)))
    return rows


ALL = list(range(1, 1001))
EVENT = Window(began_s=1004.0, ended_s=1009.0)
UNHARMED = Damage(silence_s=0.01, lost=0, doubled=0, keys_lost=0, forgotten=0, out_of_order=0)


def test_an_undisturbed_stream_has_no_damage():
    (damage,) = assess(log(ALL), [EVENT])
    assert damage == UNHARMED
    assert damage.exact


def test_silence_is_the_largest_gap_around_the_event():
    rows = log(ALL, times={401: 1006.5})
    assert assess(rows, [Window(began_s=1004.2, ended_s=1012.0)])[0].silence_s == 2.5


def test_a_stream_that_does_not_come_back_is_silent_until_the_end():
    assert assess(log(ALL[:450]), [EVENT])[0].silence_s == 4.5


def test_what_never_arrives_is_lost_and_what_arrives_twice_is_doubled():
    (damage,) = assess(log([n for n in ALL if n not in (500, 501, 502)]), [EVENT])
    assert (damage.lost, damage.doubled, damage.exact) == (3, 0, False)
    (damage,) = assess(log([*ALL[:600], 555, 556, *ALL[600:]]), [EVENT])
    assert (damage.lost, damage.doubled, damage.out_of_order, damage.exact) == (0, 2, 0, False)


def test_a_count_that_begins_anew_has_forgotten_all_its_keys():
    (damage,) = assess(log(ALL, forget_at=500), [EVENT])
    assert (damage.keys_lost, damage.forgotten, damage.lost) == (KEYS, 499, 0)


def test_order_counts_within_a_key_only():
    swapped_keys = [*ALL[:499], 501, 500, *ALL[501:]]
    assert assess(log(swapped_keys), [EVENT])[0].out_of_order == 0
    one_key = [n for n in ALL if n != 500]
    one_key.insert(one_key.index(510) + 1, 500)
    assert assess(log(one_key), [EVENT])[0].out_of_order == 1


def test_damage_is_charged_to_the_event_during_which_it_happened():
    events = [Window(began_s=1002.5, ended_s=1004.0), Window(began_s=1006.5, ended_s=1009.0)]
    damages = assess(log([n for n in ALL if n not in (300, 700, 701)], forget_at=702), events)
    assert [d.lost for d in damages] == [1, 2]
    assert [d.keys_lost for d in damages] == [0, KEYS]


def test_lines_of_the_sink_are_read():
    row = Row(key=7, n=107, count=3, arrived_s=1700000000.5, delay_s=0.25)
    assert parse([b"7 107 3 57 4 1700000000250 1700000000500"]) == [row]
    assert arrival_times([b"7 107 3 57 4 1700000000250 1700000000500"]) == [row.arrived_s]
