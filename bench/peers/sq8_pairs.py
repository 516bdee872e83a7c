"""FAISS SQ8 with one thread: recall against a ground truth of bitsweep, and queries a second of CPU time.

usage: sq8_pairs.py BASE QUERIES GROUNDTRUTH cosine|ip|l2
"""
import json
import sys
import time

import faiss
import numpy as np

K = 10


def read_vectors(path):
    """Rows of a .fbin or .u8bin file as float32."""
    head = np.fromfile(path, dtype=np.uint32, count=2)
    kind = np.uint8 if path.endswith("u8bin") else np.float32
    return np.fromfile(path, dtype=kind, offset=8).reshape(head[0], head[1]).astype(np.float32)


def read_ids(path):
    """Ids of a ground truth in big-ann's layout."""
    head = np.fromfile(path, dtype=np.uint32, count=2)
    return np.fromfile(path, dtype=np.int32, offset=8, count=int(head[0]) * int(head[1])).reshape(head)


def main():
    base, queries = read_vectors(sys.argv[1]), read_vectors(sys.argv[2])
    truth, metric = read_ids(sys.argv[3]), sys.argv[4]
    if metric == "cosine":
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    faiss.omp_set_num_threads(1)
    index = faiss.IndexScalarQuantizer(
        base.shape[1],
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT,
    )
    started = time.process_time()
    index.train(base)
    index.add(base)
    encode_seconds = time.process_time() - started
    index.search(queries[:50], K)
    seconds = []
    for _ in range(3):
        started = time.process_time()
        _, ids = index.search(queries, K)
        seconds.append(time.process_time() - started)
    recall = np.mean([len(set(a[:K]) & set(b)) / K for a, b in zip(truth, ids)])
    print(
        json.dumps(
            {
                "faiss": faiss.__version__,
                "recall": round(float(recall), 4),
                "queries_per_second": round(len(queries) / sorted(seconds)[1], 1),
                "encode_seconds": round(encode_seconds, 2),
            }
        )
    )


main()
