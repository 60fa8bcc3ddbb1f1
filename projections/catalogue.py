"""All projections, by when they are kept."""

from projections import claims, history, journals, lanes, repositories, residuals, snapshots
from projections.table import Eventual, Immediate, Table

IMMEDIATE: tuple[Immediate, ...] = (lanes, claims, journals, repositories)
EVENTUAL: tuple[Eventual, ...] = (snapshots, residuals, history)
TABLES: tuple[Table, ...] = (
    *(each.TABLE for each in IMMEDIATE),
    *(each.TABLE for each in EVENTUAL),
)
