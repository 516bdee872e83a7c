// SPDX-License-Identifier: Apache-2.0
#include "kernels/screen/screen_lanes.h"

// v[row][dimension] to v[dimension][row].
INLINE void transpose8(__m256 v[8])
{
    __m256 t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { // v[i + c]: rows i .. i+3 of columns c, 4+c
        v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm256_permute2f128_ps(v[c], v[4 + c], 0x20);
        t[4 + c] = _mm256_permute2f128_ps(v[c], v[4 + c], 0x31);
    }
    for (int c = 0; c < 8; c++) v[c] = t[c];
}

static void pack(const float *rows, const float *scales, size_t num_rows, size_t dims, float *out)
{
    for (size_t first = 0; first < BSW_BUNDLE_ROWS; first += 8) {
        for (size_t d = 0; d < dims; d += 8) {
            __m256 v[8];
            for (size_t r = 0; r < 8; r++) {
                size_t row = first + r;
                v[r] = every(0.0f);
                if (row < num_rows)
                    v[r] = load_some(rows + row * dims + d, dims - d) * every(scales[row]);
            }
            transpose8(v);
            for (size_t i = 0; i < 8 && d + i < dims; i++)
                _mm256_store_ps(out + (d + i) * BSW_BUNDLE_ROWS + first, v[i]);
        }
    }
}

const struct bsw_screen_table bsw_screen_avx2 = {
    .level = "avx2",
    .pack = pack,
    .scan = scan,
};
