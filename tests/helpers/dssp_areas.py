"""Areas on the globe, drawn."""

from __future__ import annotations

from hypothesis import strategies as st

from leeward.policies.dssp.model.area import Area


@st.composite
def areas(draw, step: int = 10) -> Area:
    """Edges on a grid of so many degrees: the wider it is, the more areas only touch."""
    longitudes, latitudes = (
        st.integers(-most // step, most // step).map(lambda n: 1.0 * step * n) for most in (180, 90)
    )
    south, north = sorted((draw(latitudes), draw(latitudes)))
    return Area(draw(longitudes), south, draw(longitudes), north)
