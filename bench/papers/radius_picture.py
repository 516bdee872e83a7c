#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a radius does, drawn from an index: docs/radius.svg.

Left the plane of queries' projections of one subspace: how dense the sample's rows lie in it, a
query's projection, and its radius. Right the same plane less the centroid of the query's nearest
list: the entries, the ray, what it hits.

usage: bench/papers/radius_picture.py INDEX QUERIES.u8bin OUT.svg [QUERY [SUBSPACE]]
of an index of encode --metric l2 --codec pq --entries radius --rotation none --lists N. Needs
nothing but Python: it reads the index's manifest as common/bitsweep.proto has it.
"""

import math
import struct
import sys
from array import array

CELLS = 100
SIDE = 360  # of a panel
GAP = 40
PART, LISTS = 19, 20  # of message Manifest: what pq codes are a function of; lists


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """A message's fields by number, the last of each."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        out[key >> 3] = value
    return out


def numbers(code, data):
    out = array(code)
    out.frombytes(data)
    return out


def read_index(folder):
    with open(folder + "/manifest.pb", "rb") as file:
        manifest = fields(file.read())
    product, lists = fields(manifest[PART]), fields(manifest[LISTS])
    radii = fields(product[8])
    return {
        "dims": product[1],
        "parts": product[2],
        "num": 1 << product[3],
        "mean": numbers("f", product[5]),
        "entries": numbers("f", product[7]),
        "boxes": numbers("f", radii[1]),
        "counts": numbers("H", radii[2]),
        "fits": numbers("d", radii[3]),
        "lists": lists[1],
        "centroids": numbers("f", lists[2]),
    }


def read_query(path, row, dims):
    with open(path, "rb") as file:
        _, width = struct.unpack("<II", file.read(8))
        if width != dims:
            sys.exit(f"radius_picture.py: {path}: {width} dims, the index has {dims}")
        file.seek(8 + row * dims)
        return list(file.read(dims))


def nearest_list(index, query):
    dims, centroids = index["dims"], index["centroids"]
    best = min(
        range(index["lists"]),
        key=lambda l: sum((query[d] - centroids[l * dims + d]) ** 2 for d in range(dims)),
    )
    return centroids[best * dims : (best + 1) * dims]


def radius_at(index, part, x, y):
    """shard/codecs/product_radii.h: a cubic of the logarithm of density."""
    low_x, low_y, high_x, high_y = index["boxes"][4 * part : 4 * part + 4]
    middle, half, least, most, *terms = index["fits"][8 * part : 8 * part + 8]

    def cell(v, low, high):
        return min(max(int((v - low) / (high - low) * CELLS), 0), CELLS - 1)

    at = cell(y, low_y, high_y) * CELLS + cell(x, low_x, high_x)
    count = index["counts"][part * CELLS * CELLS + at]
    density = math.log2(count if count else 0.5) - math.log2(
        (high_x - low_x) / CELLS * (high_y - low_y) / CELLS
    )
    t = min(max((density - middle) / half if half > 0 else 0, -1), 1)
    return min(max(sum(c * t**i for i, c in enumerate(terms)), least), most)


class Panel:
    """A square of the plane around a middle, drawn at `left`."""

    def __init__(self, left, middle, reach):
        self.left, self.middle, self.scale = left, middle, SIDE / (2 * reach)
        self.parts = []

    def at(self, x, y):
        return (
            self.left + SIDE / 2 + (x - self.middle[0]) * self.scale,
            GAP + SIDE / 2 - (y - self.middle[1]) * self.scale,
        )

    def circle(self, x, y, radius, style):
        u, v = self.at(x, y)
        self.parts.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="{radius:.1f}" {style}/>')

    def cross(self, x, y):
        u, v = self.at(x, y)
        self.parts.append(
            f'<path d="M{u - 6:.1f} {v:.1f}h12M{u:.1f} {v - 6:.1f}v12" '
            'stroke="#c00" stroke-width="2"/>'
        )

    def svg(self, name, title):
        box = f'x="{self.left}" y="{GAP}" width="{SIDE}" height="{SIDE}"'
        return (
            f'<clipPath id="{name}"><rect {box}/></clipPath><g clip-path="url(#{name})">'
            + "\n".join(self.parts)
            + f'</g><rect {box} fill="none" stroke="#444"/>'
            + f'<text x="{self.left}" y="{GAP - 12}">{title}</text>'
        )


def density_panel(index, part, q, radius):
    low_x, low_y, high_x, high_y = index["boxes"][4 * part : 4 * part + 4]
    reach = max(high_x - low_x, high_y - low_y) / 2 * 1.04
    panel = Panel(GAP, ((low_x + high_x) / 2, (low_y + high_y) / 2), reach)
    step, greys = 2, {}  # cells of a drawn one
    counts = index["counts"][part * CELLS * CELLS : (part + 1) * CELLS * CELLS]
    width = (high_x - low_x) / CELLS * step * panel.scale
    height = (high_y - low_y) / CELLS * step * panel.scale
    for row in range(0, CELLS, step):
        for column in range(0, CELLS, step):
            count = sum(
                counts[(row + i) * CELLS + column + j] for i in range(step) for j in range(step)
            )
            if count == 0:
                continue
            grey = max(235 - 18 * int(math.log2(count)), 40)
            u, v = panel.at(
                low_x + column * (high_x - low_x) / CELLS,
                low_y + (row + step) * (high_y - low_y) / CELLS,
            )
            greys.setdefault(grey, []).append(f"M{u:.0f} {v:.0f}h{width:.1f}v{height:.1f}h-{width:.1f}z")
    for grey, cells in sorted(greys.items()):
        panel.parts.append(f'<path fill="rgb({grey},{grey},{grey})" d="{"".join(cells)}"/>')
    panel.circle(q[0], q[1], radius * panel.scale, 'fill="none" stroke="#c00" stroke-width="2"')
    panel.cross(*q)
    return panel.svg("density", "rows of the sample; a query's projection and its radius")


def entry_panel(index, part, ray, radius):
    num = index["num"]
    xs = index["entries"][2 * part * num : (2 * part + 1) * num]
    ys = index["entries"][(2 * part + 1) * num : (2 * part + 2) * num]
    reach = max(max(map(abs, xs)), max(map(abs, ys)), abs(ray[0]), abs(ray[1])) * 1.06
    panel = Panel(2 * GAP + SIDE, (0, 0), reach)
    panel.circle(*ray, radius * panel.scale, 'fill="#c00" fill-opacity="0.1" stroke="#c00"')
    panel.circle(
        *ray, radius / 2 * panel.scale, 'fill="none" stroke="#c00" stroke-dasharray="4 3"'
    )
    hits = inner = 0
    for x, y in zip(xs, ys):
        distance = math.hypot(x - ray[0], y - ray[1])
        style = 'fill="none" stroke="#888"'
        if distance <= radius:
            hits += 1
            inner += distance <= radius / 2
            style = 'fill="#05a"' if distance <= radius / 2 else 'fill="#6ae" stroke="#05a"'
        panel.circle(x, y, 3, style)
    panel.cross(*ray)
    title = f"less the list's centroid: {hits} of {num} entries hit, {inner} by half the radius"
    return panel.svg("entries", title)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.split("\n\n")[2])
    folder, queries, out = sys.argv[1:4]
    row = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    part = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    index = read_index(folder)
    query = read_query(queries, row, index["dims"])
    centroid = nearest_list(index, query)
    axes = (2 * part, 2 * part + 1)
    q = [query[d] - index["mean"][d] for d in axes]
    ray = [query[d] - centroid[d] for d in axes]
    radius = radius_at(index, part, *q)
    width, height = 3 * GAP + 2 * SIDE, 2 * GAP + SIDE
    with open(out, "w", encoding="ascii") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="11">\n'
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
            f"{density_panel(index, part, q, radius)}\n{entry_panel(index, part, ray, radius)}\n"
            f'<text x="{GAP}" y="{height - 14}">subspace {part} of {index["parts"]}, '
            f"radius {radius:.1f}; filled: hit, dark: by half the radius (mode M)</text>\n</svg>\n"
        )


if __name__ == "__main__":
    main()
