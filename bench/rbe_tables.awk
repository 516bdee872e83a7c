# The table and gates of rbe_tables.sh from its runs.tsv: model, seed, train loss, validation loss, ROC AUC,
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

# Of the mean of the differences, seed by seed: both models of a seed have the same split, and their
# negatives are the same. other "": of the model's own mean.
function error_of(model, other, column,    seed, difference, middle, square) {
    if (runs[model] < 2) return 0
    middle = mean(model, column) - (other == "" ? 0 : mean(other, column))
    for (seed in seeds) {
        difference = value[model, seed, column] - (other == "" ? 0 : value[other, seed, column])
        square += (difference - middle) ^ 2
    }
    return sqrt(square / (runs[model] - 1) / runs[model])
}

# Of the reference gap, from m_3 to m_1, what a model with this ROC AUC is above m_3.
function lift(auc, low, high) {
    return high == low ? 0 : 100 * (auc - low) / (high - low)
}

# A model, and what the paper has of it: bits of query / key, log loss, ROC AUC, or less.
function print_model(model, paper,    auc, words) {
    auc = mean(model, AUC)
    split(paper, words, " ")
    printf "%-15s %6.4f  %6.4f  %6.4f +- %.4f  %7.2f     %6.4f   |  %5s  %6s  %6s  %7s\n", model,
        mean(model, TRAIN), mean(model, VALIDATION), auc, error_of(model, "", AUC),
        lift(auc, mean("m_3", AUC), mean("m_1", AUC)), mean(model, RECALL), words[1], words[2], words[3],
        words[3] == "-" ? "-" : sprintf("%.2f", lift(words[3], 0.7846, 0.8044))
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
    print "                log loss                                  1-recall  |         paper: Tables 2, 4, 5, 6"
    print "model           train   valid.  ROC AUC            lift %  @10      |    q/k    loss     AUC   lift %"
    print_model("m_1", "32/32 0.0293 0.8044")
    print_model("m_2", "1/1 0.0481 0.7719")
    print_model("m_3", "1/1 0.0425 0.7846")
    print_model("rbe_2", "2/2 0.0333 0.7972")
    print_model("rbe*", "3/2 0.0312 0.8005")
    print_model("rbe_3", "3/3 0.0294 0.8034")
    print_model("m_2:straight", "1/1 - -")
    print_model("rbe_2:straight", "2/2 - -")
    print_model("rbe*:straight", "3/2 - -")
    print_model("rbe_3:straight", "3/3 - -")
    print_model("m_2:annealing", "1/1 - 0.7730")
    print_model("rbe_2:annealing", "2/2 - 0.7950")
    print_model("rbe*:annealing", "3/2 - 0.8007")
    print_model("rbe_3:annealing", "3/3 - 0.8014")
    print_model("rbe_2:flat", "2/2 - 0.7886")
    print_model("rbe*:flat", "3/2 - 0.7926")
    print_model("rbe_3:flat", "3/3 - 0.7945")

    print "\nGates: by more than twice the standard error of the difference, seed by seed"
    gate("m_2 < rbe_2", "m_2", "rbe_2")
    gate("m_3 < rbe*", "m_3", "rbe*")
    gate("no weights < weights, rbe_2", "rbe_2:flat", "rbe_2")
    gate("no weights < weights, rbe*", "rbe*:flat", "rbe*")
    gate("no weights < weights, rbe_3", "rbe_3:flat", "rbe_3")
    exit code
}
