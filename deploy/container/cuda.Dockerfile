# SPDX-License-Identifier: Apache-2.0
# bitsweep for NVIDIA GPUs, with NCCL. In the root of the repository:
#   docker build -f deploy/container/cuda.Dockerfile -t bitsweep-cuda .
#   docker run --rm --gpus all --shm-size=4g -v "$PWD":/data bitsweep-cuda search --device cuda --index /data/idx ...
# NCCL shares memory through /dev/shm, too: some 64 MB for each pair of GPUs, so --shm-size=4g for eight of them.
# --build-arg ARCHITECTURES=90 compiles for one kind of GPU alone, in much less time.
ARG CUDA=12.6.3
FROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build
ARG ARCHITECTURES=all
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        gcc g++ libc6-dev cmake ninja-build pkg-config protobuf-c-compiler protobuf-compiler dpkg-dev file \
        libopenmpi-dev libprotobuf-c-dev libxxhash-dev libhwloc-dev libopenblas-dev libjansson-dev libutf8proc-dev \
        libhdf5-dev \
        && rm -rf /var/lib/apt/lists/*
COPY . /source
WORKDIR /source
RUN cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITSWEEP_MPI=ON -DBITSWEEP_HDF5=ON -DBITSWEEP_CUDA=ON \
        -DBITSWEEP_CUDA_ARCHITECTURES="$ARCHITECTURES" && \
    cmake --build /build --target packaged && \
    deploy/package/package.sh /build /package

# `base` has the CUDA runtime alone; libnccl2 is in the same source of packages.
FROM nvidia/cuda:${CUDA}-base-ubuntu22.04
COPY --from=build /package /package
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends --allow-change-held-packages \
        /package/bitsweep_*.deb openmpi-bin openssh-client openssh-server libnccl2 && \
    rm -rf /var/lib/apt/lists/* /package && \
    useradd --create-home --uid 1000 bitsweep
COPY --chown=bitsweep deploy/container/sshd_config /home/bitsweep/.sshd_config
COPY deploy/container/ssh_config /etc/ssh/ssh_config.d/bitsweep.conf
USER bitsweep
WORKDIR /data
ENTRYPOINT ["bitsweep"]
CMD ["--help"]
