"""One more header for every row of a column of headers, without a loop over rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def with_header(headers: pa.Array | None, name: str, values: pa.Array) -> pa.Array:
    """`headers` (none, or a list of key and value for each row) with this one behind them, in the place of any of the
    same name. Where `values` is null a row gets none."""
    rows = len(values)
    own = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(name, pa.string()), rows), values.cast(pa.binary())], fields=list(_HEADER)
    )
    if headers is None or headers.null_count == rows:
        if not values.null_count:
            return pa.ListArray.from_arrays(_numbers(rows + 1), own)
        flat, parents = own.slice(0, 0), pa.array([], pa.int64())
    else:
        flat, parents = headers.flatten().cast(_HEADER), pc.list_parent_indices(headers).cast(pa.int64())
        is_other = pc.not_equal(flat.field("key"), name)
        flat, parents = flat.filter(is_other), parents.filter(is_other)
    is_given = pc.is_valid(values)
    all_parents = pa.concat_arrays([parents, _numbers(rows).cast(pa.int64()).filter(is_given)])
    # A stable sort: what a row has got already stays before the new one.
    ordered = pa.concat_arrays([flat, own.filter(is_given)]).take(pc.sort_indices(all_parents))
    counted = pc.value_counts(pa.concat_arrays([all_parents, _numbers(rows).cast(pa.int64())]))
    order = pc.sort_indices(counted.field("values"))
    lengths = pc.subtract(counted.field("counts").take(order), 1)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), ordered)


def _numbers(count: int) -> pa.Array:
    """0, 1, 2, ..."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int32()), count)), pa.scalar(1, pa.int32()))
