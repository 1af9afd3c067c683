"""AgileDART's way to keep state at neighbours (`leeward.core.fragments`): coding, choice and fetch put together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from leeward.core.errors import ConfigError, LeewardError
from leeward.core.fragments import Ask, Buffer
from leeward.policies.agiledart.recovery.coding import Encoded, Layout, Manifest, Rebuild, encode, layout_of
from leeward.policies.agiledart.recovery.fetch import Block, Fetch, Patience
from leeward.policies.agiledart.recovery.settings import FragmentSettings
from leeward.policies.agiledart.recovery.tuning import Wish, tune


class Fragments:
    """See the module."""

    Settings = FragmentSettings

    def __init__(self, settings: FragmentSettings | None = None) -> None:
        self._settings = settings or FragmentSettings()

    def spread(self, state: Buffer, *, neighbours: int) -> Stored:
        """See `Scheme.spread`."""
        size = memoryview(state).nbytes
        layout, period_s = self.layout(size, neighbours)
        return Stored(encode(state, layout), period_s)

    def layout(self, size: int, neighbours: int) -> tuple[Layout, float]:
        """For a state of so many bytes, and the period, s, that `recover_s` allows with it; 0: it is not kept.

        Raises ConfigError for too few neighbours.
        """
        known, m, k, period_s = self._settings, self._settings.m, self._settings.k, 0.0
        if known.recover_s:
            with suppress(LeewardError):  # a checkpoint that takes too long to recover is better than none
                choice = tune(size, known.facts(neighbours), Wish(recover_s=known.recover_s, loss=known.loss))
                m, k, period_s = choice.m, choice.k, choice.period_s
        if m + k > neighbours:
            raise ConfigError(
                f"m = {m} and k = {k}: {m + k} fragments need as many neighbours, and there are {neighbours}.",
                remedy="Let leeward.state.agents lead to more agents, or lower m or k in leeward.state.options.",
            )
        return layout_of(size, m, k), period_s

    def rebuild(self, record: bytes, ranges: Sequence[tuple[int, int]]) -> Restoring:
        """See `Scheme.rebuild`."""
        known = self._settings
        return Restoring(Manifest.from_bytes(record), ranges, Patience(silent_s=known.silent_s, lost_s=known.lost_s))


class Stored:
    """A state in fragments; see `leeward.core.fragments.Spread`."""

    def __init__(self, encoded: Encoded, period_s: float) -> None:
        self._encoded, self.period_s = encoded, period_s
        self.fragments, self.least = encoded.fragments, encoded.layout.m

    def record(self, holders: Sequence[str]) -> bytes:
        """The manifest."""
        return self._encoded.manifest(holders).to_bytes()


class Restoring:
    """A rebuild in progress; see `leeward.core.fragments.Rebuilding`."""

    def __init__(self, manifest: Manifest, ranges: Sequence[tuple[int, int]], patience: Patience | None = None) -> None:
        at = self._layout = manifest.layout
        wanted = sorted({stripe for begin, length in ranges for stripe in at.stripes_of(begin, length)})
        self._holders = manifest.holders
        self._rebuild = Rebuild(manifest, wanted)
        there = [fragment for fragment, holder in enumerate(manifest.holders) if holder]
        self.fetch = Fetch(at.m, {stripe: at.block(stripe)[1] for stripe in wanted}, there, patience)

    @property
    def over(self) -> bool:
        """All that is wanted is here."""
        return self.fetch.over

    def begin(self, now: float) -> list[Ask]:
        """The first asks."""
        return self._asks(self.fetch.begin(now))

    def received(self, ask: Ask, data: Buffer, now: float) -> list[Ask]:
        """Check the block, decode its stripe if it is complete, and ask for more."""
        block = Block(ask.begin // self._layout.unit, ask.fragment)
        good = self._rebuild.take(block.stripe, block.fragment, data)
        return self._asks(self.fetch.arrived(block, good, now))

    def gone(self, holder: str, now: float) -> list[Ask]:
        """This holder is not there, or has no such fragment."""
        found = [fragment for fragment, other in enumerate(self._holders) if other == holder]
        return self._asks([block for fragment in found for block in self.fetch.gone(fragment, now)])

    def tick(self, now: float) -> list[Ask]:
        """Time has passed."""
        return self._asks(self.fetch.tick(now))

    def state(self) -> memoryview:
        """The state; raises SnapshotError if it is not the one that was stored."""
        return self._rebuild.state()

    def _asks(self, blocks: Sequence[Block]) -> list[Ask]:
        return [
            Ask(self._holders[block.fragment], block.fragment, *self._layout.block(block.stripe)) for block in blocks
        ]
