"""The packages."""

from parcel_bolts import Descriptions, Needs, Rows
from streamparse import Grouping, Topology


class Parcels(Topology):
    descriptions = Descriptions.spec()
    needs = Needs.spec(inputs={descriptions: Grouping.fields(["package"])}, par=2)
    rows = Rows.spec(inputs={needs: Grouping.fields("package")}, par=2)
