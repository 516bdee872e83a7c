// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_loss.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

// One query against its documents: its own at place 0, then the negatives.
struct choice {
    size_t documents[BSW_RBE_MAX_NEGATIVES + 1];
    double scores[BSW_RBE_MAX_NEGATIVES + 1];  // times gamma; then P
    double targets[BSW_RBE_MAX_NEGATIVES + 1]; // T
};

// Factors for the codes of one side, [num_rows] each.
struct code_factors {
    float *factors;  // what dots are multiplied by: 1 / norm, or the weights of similarities
    float *inverses; // 1 / <direction, code>; 0 for 0
    float *along;    // of the gradient, in units of the direction
};

static void fill_factors(const float *codes, const float *directions, const float *weights,
                         size_t rows, size_t n, struct code_factors *out)
{
    for (size_t i = 0; i < rows; i++) {
        float norm = cblas_snrm2((int)n, codes + i * n, 1);
        float dot = cblas_sdot((int)n, codes + i * n, 1, directions + i * n, 1);
        out->factors[i] = weights ? weights[i] : norm > 0 ? 1 / norm : 1;
        out->inverses[i] = dot > 0 ? 1 / dot : 0;
        out->along[i] = 0;
    }
}

// values -> softmax; returns the logarithm of what they were divided by.
static double softmax(double *values, size_t count)
{
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) sum += exp(values[i] - most);
    double logarithm = most + log(sum);
    for (size_t i = 0; i < count; i++) values[i] = exp(values[i] - logarithm);
    return logarithm;
}

static double similarity_loss(const struct bsw_rbe_loss_group *group, const float *exact,
                              struct choice *choice)
{
    size_t count = group->num_negatives + 1;
    double gamma = (double)group->gamma, loss = 0;
    for (size_t r = 0; r < count; r++)
        choice->targets[r] = gamma * (double)exact[choice->documents[r]];
    double divisor = softmax(choice->targets, count);
    for (size_t r = 0; r < count; r++) {
        double target = gamma * (double)exact[choice->documents[r]];
        loss += choice->targets[r] * (target - choice->scores[r]);
    }
    return loss - divisor + softmax(choice->scores, count);
}

static double pair_loss(const struct bsw_rbe_loss_group *group, struct choice *choice)
{
    double own = choice->scores[0];
    for (size_t r = 0; r <= group->num_negatives; r++) choice->targets[r] = r == 0;
    return softmax(choice->scores, group->num_negatives + 1) - own;
}

// dots: [num_rows], of query i times its factor. Returns the query's loss.
static double judge(const struct bsw_rbe_loss_group *group, size_t i, const float *dots,
                    const float *factors, struct choice *choice)
{
    const struct bsw_rbe_similarities *s = group->similarities;
    for (size_t r = 0; r <= group->num_negatives; r++) {
        size_t j = r == 0 ? i : (i + group->shifts[r - 1]) % group->num_rows;
        double score = (double)(dots[j] * factors[j] + (s ? s->offsets[j] : 0));
        choice->documents[r] = j;
        choice->scores[r] = (double)group->gamma * score;
    }
    return s ? similarity_loss(group, s->exact + i * group->num_rows, choice)
             : pair_loss(group, choice);
}

// The gradient with respect to the dots in place of them, and the part along either code.
static void weigh(const struct bsw_rbe_loss_group *group, size_t i, const struct choice *choice,
                  const struct code_factors *q, const struct code_factors *d, float *dots)
{
    float kept[BSW_RBE_MAX_NEGATIVES + 1];
    for (size_t r = 0; r <= group->num_negatives; r++) kept[r] = dots[choice->documents[r]];
    memset(dots, 0, group->num_rows * sizeof *dots);
    for (size_t r = 0; r <= group->num_negatives; r++) {
        size_t j = choice->documents[r];
        double slope = (choice->scores[r] - choice->targets[r]) * (double)group->gamma;
        float weight = (float)(slope / (double)group->num_rows) * d->factors[j];
        dots[j] = weight * q->factors[i];
        q->along[i] += weight * kept[r] * q->inverses[i];
        d->along[j] += weight * kept[r] * d->inverses[j];
    }
}

// gradient -= along[i] * direction of row i.
static void subtract_along(const float *directions, const float *along, size_t num_rows, size_t n,
                           float *gradient)
{
    for (size_t i = 0; i < num_rows; i++)
        cblas_saxpy((int)n, -along[i], directions + i * n, 1, gradient + i * n, 1);
}

// With A the gradient with respect to the dots, that of queries is A d and that of documents A^T q,
// less what factors take away: a cosine * q / |q|^2 for a norm.
double bsw_rbe_loss(const struct bsw_rbe_loss_group *group, float *scratch, float *query_gradient,
                    float *document_gradient)
{
    const struct bsw_rbe_similarities *s = group->similarities;
    size_t rows = group->num_rows, n = group->code_dims;
    int num_rows = (int)rows, dims = (int)n;
    float *dots = scratch, *rest = dots + rows * rows;
    struct code_factors q_factors = {rest, rest + rows, rest + 2 * rows},
                        d_factors = {rest + 3 * rows, rest + 4 * rows, rest + 5 * rows};
    const float *q = group->queries, *d = group->documents, *directions = s ? s->directions : d;
    double total = 0;
    struct choice choice;
    fill_factors(q, q, s ? s->query_weights : NULL, rows, n, &q_factors);
    fill_factors(d, directions, s ? s->document_weights : NULL, rows, n, &d_factors);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, num_rows, num_rows, dims, 1.0f, q, dims, d,
                dims, 0.0f, dots, num_rows);
    for (size_t i = 0; i < rows; i++) {
        float *row = dots + i * rows;
        for (size_t j = 0; j < rows; j++) row[j] *= q_factors.factors[i];
        total += judge(group, i, row, d_factors.factors, &choice);
        weigh(group, i, &choice, &q_factors, &d_factors, row);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, num_rows, dims, num_rows, 1.0f, dots,
                num_rows, d, dims, 0.0f, query_gradient, dims);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, num_rows, dims, num_rows, 1.0f, dots,
                num_rows, q, dims, 0.0f, document_gradient, dims);
    subtract_along(q, q_factors.along, rows, n, query_gradient);
    subtract_along(directions, d_factors.along, rows, n, document_gradient);
    return total / (double)rows;
}
