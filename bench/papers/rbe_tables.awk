# SPDX-License-Identifier: Apache-2.0
# Tables and gates of rbe_tables.sh from its runs.tsv: model, seed, train loss, validation loss, ROC AUC,
# 1-recall@10. +- is the standard error of a mean over seeds. Exit code 1: a gate failed; 2: a
# model has no run.

function mean(model, column,    seed, sum) {
    if (!(model in runs)) {
        printf "rbe_tables.awk: no run of %s\n", model > "/dev/stderr"
        exit code = 2
    }
    for (seed in seeds) sum += value[model, seed, column]
    return sum / runs[model]
}

# The error of the mean of the differences, seed by seed: both models of a seed have the same split, and their negatives
# are the same. other "": the error of the model's own mean.
function error_of(model, other, column,    seed, difference, middle, square) {
    if (runs[model] < 2) return 0
    middle = mean(model, column) - (other == "" ? 0 : mean(other, column))
    for (seed in seeds) {
        difference = value[model, seed, column] - (other == "" ? 0 : value[other, seed, column])
        square += (difference - middle) ^ 2
    }
    return sqrt(square / (runs[model] - 1) / runs[model])
}

# The lift in parts of the reference gap, from m_3 to m_1.
function lift(from, to,    gap) {
    gap = mean("m_1", AUC) - mean("m_3", AUC)
    return gap == 0 ? 0 : 100 * (mean(to, AUC) - mean(from, AUC)) / gap
}

function paper_lift(from, to) {
    return 100 * (to - from) / (0.8044 - 0.7846)
}

function auc(model) {
    return sprintf("%.4f +- %.4f", mean(model, AUC), error_of(model, "", AUC))
}

# A row of Tables 2 and 4.
function print_model(model, bits, paper_loss, paper_auc) {
    printf "%-6s %5s  %6.4f  %6.4f  %s  %7.2f     %6.4f   |  %6.4f  %6.4f  %7.2f\n", model, bits,
        mean(model, TRAIN), mean(model, VALIDATION), auc(model), lift("m_3", model), mean(model, RECALL),
        paper_loss, paper_auc, paper_lift(0.7846, paper_auc)
}

function print_model_head(text) {
    print "\n" text
    print "                   log loss                                 1-recall  |           paper"
    print "model    q/k   train   valid.  ROC AUC           AUC lift %  @10      |  loss    AUC     lift %"
}

# A row of Table 5.
function print_estimators(model, name, paper_variant, paper_annealing) {
    printf "%-6s  %s  %s  %s  |        -  %6.4f  %6.4f\n", name, auc(model ":straight"), auc(model),
        auc(model ":annealing"), paper_variant, paper_annealing
}

# A row of Table 6.
function print_weights(model, paper_flat, paper_weights) {
    printf "%-6s  %s  %s  %7.2f     |  %6.4f  %6.4f  %6.2f\n", model, auc(model ":flat"), auc(model),
        lift(model ":flat", model), paper_flat, paper_weights, paper_lift(paper_flat, paper_weights)
}

function gate(text, less, more,    difference, error, word) {
    difference = mean(more, AUC) - mean(less, AUC)
    error = error_of(more, less, AUC)
    word = "ok"
    if (difference <= 2 * error) {
        word = "FAILED"
        code = 1
    }
    printf "%s: %s: %.4f < %.4f, difference %.4f +- %.4f\n", word, text, mean(less, AUC), mean(more, AUC),
        difference, error
}

BEGIN {
    TRAIN = 3; VALIDATION = 4; AUC = 5; RECALL = 6
}

/^#/ { next }

{
    runs[$1]++
    seeds[$2]
    for (i = TRAIN; i <= RECALL; i++) value[$1, $2, i] = $i
}

END {
    print_model_head("Table 2: embedding models; the lift is from m_3, of the gap between m_3 and m_1")
    print_model("m_1", "32/32", 0.0293, 0.8044)
    print_model("m_2", "1/1", 0.0481, 0.7719)
    print_model("m_3", "1/1", 0.0425, 0.7846)
    print_model("rbe*", "3/2", 0.0312, 0.8005)
    print_model("m_5", "32/2", 0.0311, 0.8011)

    print_model_head("Table 4: bits a dimension")
    print_model("m_2", "1/1", 0.0481, 0.7719)
    print_model("rbe_2", "2/2", 0.0333, 0.7972)
    print_model("rbe*", "3/2", 0.0312, 0.8005)
    print_model("rbe_3", "3/3", 0.0294, 0.8034)
    printf "of the gap: m_2 to rbe_2 %.2f %% (paper %.2f), rbe_2 to rbe* %.2f %% (%.2f), rbe_3 to m_1 %.2f %% (%.2f)\n",
        lift("m_2", "rbe_2"), paper_lift(0.7719, 0.7972), lift("rbe_2", "rbe*"), paper_lift(0.7972, 0.8005),
        lift("rbe_3", "m_1"), paper_lift(0.8034, 0.8044)

    print "\nTable 5: estimators, ROC AUC"
    print "                                                             |            paper"
    print "model   straight-through  variant           annealing tanh   |  str.-thr. variant annealing"
    print_estimators("m_2", "rbe_1", 0.7719, 0.7730)
    print_estimators("rbe_2", "rbe_2", 0.7972, 0.7950)
    print_estimators("rbe*", "rbe*", 0.8005, 0.8007)
    print_estimators("rbe_3", "rbe_3", 0.8034, 0.8014)

    print "\nTable 6: residual weights, ROC AUC"
    print "                                                         |           paper"
    print "model   none              1/2, 1/4, ...     AUC lift %   |  none    weights lift %"
    print_weights("rbe_2", 0.7886, 0.7972)
    print_weights("rbe*", 0.7926, 0.8005)
    print_weights("rbe_3", 0.7945, 0.8034)

    print "\nGates: by more than twice the standard error of the difference, seed by seed"
    gate("m_2 < rbe_2", "m_2", "rbe_2")
    gate("m_3 < rbe*", "m_3", "rbe*")
    gate("no weights < weights, rbe_2", "rbe_2:flat", "rbe_2")
    gate("no weights < weights, rbe*", "rbe*:flat", "rbe*")
    gate("no weights < weights, rbe_3", "rbe_3:flat", "rbe_3")
    exit code
}
