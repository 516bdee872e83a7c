# SPDX-License-Identifier: Apache-2.0
# The plots of a sweep, from its sweep.csv: a panel for each k. `bitsweep sweep` writes this file beside
# the table and runs it; `gnuplot sweep.gnuplot` draws them again.
set datafile separator ','
set datafile columnheaders
# Without quoted names: gnuplot does not read those that hold quotes.
csv = '< sed -zE ''s/"([^"]|"")*"/-/g'' sweep.csv'
if (!exists('subject')) { subject = '' } # data, metric, threads: a line in front of this
if (!exists('plots')) { plots = 'pareto bytes ceiling' }

# ---- the table, and its values of k in the order in which they come ----

stats csv using (column('recall')) nooutput
N = int(STATS_records)
array Algorithm[N]
array Select[N]
array Bits[N]
array QueryBits[N]
array Oversample[N]
array K[N]
array Recall[N]
array Ceiling[N]
array Rate[N]
array Bytes[N]
array Front[N]
array Lists[N]
array Parts[N]
array IsPartial[N] # looks at some lists alone
row(i) = (Algorithm[i] = stringcolumn('algorithm'), Select[i] = stringcolumn('select'), \
    Bits[i] = column('true_bits'), QueryBits[i] = column('query_bits'), \
    Oversample[i] = column('oversample'), K[i] = column('count'), Recall[i] = column('recall'), \
    Ceiling[i] = column('ceiling'), Rate[i] = column('qps'), \
    Bytes[i] = column('bytes_per_vector'), Front[i] = column('pareto'), Lists[i] = column('lists'), \
    Parts[i] = column('subspaces'), \
    IsPartial[i] = column('probe') > 0 || column('probe_ratio') > 0 || column('recall_asked') > 0)
stats csv using (row(int(column(0)) + 1), 0) nooutput
ks = ''
do for [i=1:N] {
  if (strstrt(ks.' ', sprintf(' %d ', K[i])) == 0) { ks = ks.sprintf(' %d', K[i]) }
}

# ---- colours, shapes, axes ----

# Colours tell bits, or oversampling; the last is for what has none left. Shapes are those of gnuplot: open
# and filled square, circle, triangle, diamond, and an open pentagon; of indexes with lists plus, cross, star,
# and a triangle that stands on its point.
colours = '0x4477aa 0xee6677 0x228833 0xb8860b 0x33aacc 0xaa3377 0xe07b00 0x000000 0x999999'
colour(i) = int(word(colours, i > 8 ? 9 : int(i)))
has_shape_of_lists(i) = Lists[i] > 0 && plot eq 'pareto'
shape(i) = Select[i] eq 'histogram' ? 14 : has_shape_of_lists(i) ? (Algorithm[i] eq 'xfbq' ? 1 : \
    Algorithm[i] eq 'saq' ? 2 : Algorithm[i] eq 'rbe' ? 3 : 10) : (Select[i] eq 'queue') + (Algorithm[i] eq 'xfbq' ? 4 : \
    Algorithm[i] eq 'saq' ? 6 : Algorithm[i] eq 'rbe' ? 8 : 12)
dashes(i) = Algorithm[i] eq 'saq' ? 1 : Algorithm[i] eq 'rbe' ? 4 : 3
coloured(i) = plot eq 'pareto' ? Bits[i] : Oversample[i]
is_same_series(i, j) = Algorithm[i] eq Algorithm[j] && (plot ne 'pareto' ? Oversample[i] == Oversample[j] : \
    Bits[i] == Bits[j] && Parts[i] == Parts[j] && Select[i] eq Select[j] && (Lists[i] > 0) == (Lists[j] > 0))
# Points that the plots but for the front show as one.
is_same_code(i, j) = K[i] == K[j] && Algorithm[i] eq Algorithm[j] && Bits[i] == Bits[j] && Parts[i] == Parts[j] && \
    QueryBits[i] == QueryBits[j] && Oversample[i] == Oversample[j]
goes_before(i, j) = IsPartial[i] != IsPartial[j] ? IsPartial[i] < IsPartial[j] : \
    IsPartial[i] && Recall[i] != Recall[j] ? Recall[i] > Recall[j] : i < j

# Recall is drawn as -log10(1.001 - recall), which keeps 0.99 and 0.999 apart, and no further beyond 0 and 1
# than that marks there are whole.
stretched(r) = -log10(1.001 - r)
unstretched(at) = 1.001 - 10 ** (-at)
margin(span, least) = span > least / 50 ? span / 20 : least
least_of(a, b) = a < b ? a : b
most_of(a, b) = a > b ? a : b

overlaps(i, j) = abs(AtX[i] - AtX[j]) <= 0.024 * span_x && abs(AtY[i] - AtY[j]) <= 0.032 * span_y

array X[N]
array Y[N]
array AtX[N]
array AtY[N]
array Panel[N]  # the points of a panel, by their rows
array Marked[N] # those with a mark
array Mark[N]
array Series[N]
array First[N] # of a series
array Colour[N]
array Values[8] # that have a colour

do for [plot in plots] {

# ---- values that have a colour, in rising order: it is the same in all panels ----

num_values = 0
do for [i=1:N] {
  is_known = 0
  place = 1
  do for [v=1:num_values] {
    if (Values[v] == coloured(i)) { is_known = 1 }
    if (Values[v] < coloured(i)) { place = v + 1 }
  }
  if (!is_known && num_values < 8) {
    num_values = num_values + 1
    do for [v=num_values:place+1:-1] { Values[v] = Values[v - 1] }
    Values[place] = coloured(i)
  }
}
do for [i=1:N] {
  Colour[i] = 9
  do for [v=1:num_values] { if (Values[v] == coloured(i)) { Colour[i] = v } }
}

do for [terminal in 'svg png'] {
  reset
  if (terminal eq 'svg') {
    set terminal svg size 880,460*words(ks) dynamic noenhanced background rgb 'white' name plot
  } else {
    set terminal pngcairo size 880,460*words(ks) noenhanced pointscale 1.5
  }
  set output 'sweep-'.plot.'.'.terminal
  set grid
  set key outside right top Left reverse
  if (plot eq 'pareto') {
    set logscale y
    set nonlinear x via -log10(1.001 - x) inverse 1.001 - 10 ** (-x)
  } else {
    set nonlinear y via -log10(1.001 - y) inverse 1.001 - 10 ** (-y)
  }
  set multiplot layout words(ks),1
  do for [k_text in ks] {
    k = int(k_text)

    # ---- points of the panel ----
    # Recall and ceilings by size are drawn for a codec's finest queries, and of points that differ in
    # their selection alone for the first; of those that look at some lists for the best, and only where no
    # other looks at all rows.
    finest = ''
    do for [i=1:N] {
      if (K[i] == k) {
        if (strstrt(finest, sprintf(' %s>%d ', Algorithm[i], QueryBits[i])) == 0) {
          finest = finest.sprintf(' %s>%d ', Algorithm[i], QueryBits[i])
        }
      }
    }
    M = 0
    do for [i=1:N] {
      is_in = K[i] == k
      if (is_in && plot ne 'pareto') {
        do for [bits=int(QueryBits[i])+1:16] {
          if (strstrt(finest, sprintf(' %s>%d ', Algorithm[i], bits)) > 0) { is_in = 0 }
        }
        if (is_in && (sum [j=1:N] (j != i && is_same_code(j, i) && goes_before(j, i))) > 0) { is_in = 0 }
      }
      if (is_in) {
        X[i] = plot eq 'pareto' ? Recall[i] : plot eq 'bytes' ? Bytes[i] : Bits[i]
        Y[i] = plot eq 'pareto' ? Rate[i] : plot eq 'bytes' ? Recall[i] : Ceiling[i]
        AtX[i] = plot eq 'pareto' ? stretched(X[i]) : X[i]
        AtY[i] = plot eq 'pareto' ? log10(Y[i]) : stretched(Y[i])
        low_x = M ? least_of(low_x, AtX[i]) : AtX[i]
        low_y = M ? least_of(low_y, AtY[i]) : AtY[i]
        high_x = M ? most_of(high_x, AtX[i]) : AtX[i]
        high_y = M ? most_of(high_y, AtY[i]) : AtY[i]
        M = M + 1
        Panel[M] = i
      }
    }

    # ---- marks: of those that would overlap one is drawn, of the front if there is one ----
    span_x = high_x > low_x ? high_x - low_x : 1
    span_y = high_y > low_y ? high_y - low_y : 1
    num_marked = 0
    do for [is_front in '1 0'] {
      do for [p=1:M] {
        i = Panel[p]
        if (Front[i] == int(is_front)) {
          Mark[i] = num_marked == 0 ? 1 : (sum [m=1:num_marked] overlaps(Marked[m], i)) == 0
          if (Mark[i]) {
            num_marked = num_marked + 1
            Marked[num_marked] = i
          }
        }
      }
    }

    # ---- series, colours and shapes in use ----
    num_series = 0
    shapes = ''
    shown = '' # the first point of each shape
    more = 0
    do for [p=1:M] {
      i = Panel[p]
      Series[i] = 0
      do for [s=1:num_series] { if (is_same_series(First[s], i)) { Series[i] = s } }
      if (Series[i] == 0) {
        num_series = num_series + 1
        Series[i] = num_series
        First[num_series] = i
      }
      if (strstrt(shapes, sprintf(' %d ', shape(i))) == 0) {
        shapes = shapes.sprintf(' %d ', shape(i))
        shown = shown.sprintf(' %d', i)
      }
      if (Colour[i] == 9) { more = 1 }
    }

    # ---- axes: a little more than the points take ----
    axes = '' # what they show, for tests
    array Low[2] = [low_x, low_y]
    array High[2] = [high_x, high_y]
    do for [a=1:2] {
      axis = a == 1 ? 'x' : 'y'
      is_recall = (a == 1) == (plot eq 'pareto')
      is_rate = !is_recall && plot eq 'pareto'
      least = is_recall ? 0.05 : is_rate ? 0.02 : plot eq 'bytes' ? 0.05 * High[a] : 0.3
      wider = margin(High[a] - Low[a], least)
      low = Low[a] - wider
      high = High[a] + wider
      if (is_recall) {
        low = unstretched(most_of(low, stretched(-0.03)))
        high = unstretched(least_of(high, stretched(1.0003)))
      }
      if (is_rate) {
        low = 10 ** low
        high = 10 ** high
      }
      eval sprintf('set %srange [%.9g:%.9g]', axis, low, high)

      # Tics: those of a list where the axis is stretched; else multiples of 1, 2 or 5 times a power of ten.
      tics = ''
      list = ''
      if (is_recall && 1.001 - low > 10 * (1.001 - high)) {
        list = '0 0.5 0.8 0.9 0.95 0.98 0.99 0.995 0.999 1'
        first = 0
        last = 0
      }
      if (is_rate && high > 4 * low) {
        list = high > 30 * low ? '1 2 5' : '1 1.5 2 3 5 7'
        first = int(floor(log10(low)))
        last = int(floor(log10(high)))
      }
      if (list ne '') {
        do for [power=first:last] {
          do for [tic_text in list] {
            tic = real(tic_text) * 10.0 ** power
            if (tic >= low && tic <= high) {
              tics = tics.(tics eq '' ? '' : ', ').sprintf("'%.10g' %.10g", tic, tic)
            }
          }
        }
      } else {
        if (is_recall || is_rate) {
          most = (high - low) / 8
          step = 10 ** floor(log10(most))
          if (step < most) { step = step * 2 }
          if (step < most) { step = step * 2.5 }
          if (step < most) { step = step * 2 }
          do for [i=int(ceil(low / step)):int(floor(high / step))] {
            tics = tics.(tics eq '' ? '' : ', ').sprintf("'%.10g' %.10g", i * step, i * step)
          }
        }
      }
      if (tics ne '') { eval sprintf('set %stics (%s)', axis, tics) }
      axes = axes.sprintf("%s [%.9g:%.9g] (%s)\n", axis, low, high, tics)
    }

    # ---- titles ----
    recall_title = sprintf('%d-recall@%d (axis stretched towards 1)', k, k)
    if (plot eq 'pareto') {
      set title sprintf("Queries a second against recall, k = %d\n%s", k, subject)
      set xlabel recall_title
      set ylabel 'queries a second (logarithmic)'
    }
    if (plot eq 'bytes') {
      set title sprintf("Recall against bytes a vector, k = %d\n%s", k, subject)
      set xlabel 'bytes a vector'
      set ylabel recall_title
    }
    if (plot eq 'ceiling') {
      set title sprintf("Ceiling of the codes by bits, k = %d\n%s", k, subject)
      set xlabel 'bits a dimension'
      set ylabel sprintf('%d-recall@L by code (axis stretched towards 1)', k)
    }

    # ---- the panel: blocks of series, and one of the front; x, y, y where there is a mark, shape, colour ----
    set datafile separator whitespace
    set datafile nocolumnheaders
    set print $points
    do for [s=1:num_series+1] {
      do for [p=1:M] {
        i = Panel[p]
        if (s > num_series ? Front[i] > 0 : Series[i] == s) {
          print sprintf('%.9g %.9g %s %d %d', X[i], Y[i], Mark[i] ? sprintf('%.9g', Y[i]) : 'NaN', \
              shape(i), colour(Colour[i]))
        }
      }
      print ''
      print ''
    }
    unset print
    unit = plot eq 'pareto' ? 'bits/dim' : 'L'
    value_title(v) = plot ne 'pareto' ? sprintf('L = %.5g k', Values[v]) : \
        sprintf('%.5g %s', Values[v], Values[v] == 1 ? 'bit/dim' : 'bits/dim')
    shape_title(i) = Algorithm[i].(plot ne 'pareto' ? '' : has_shape_of_lists(i) ? ', lists' : ', '.Select[i])
    if (plot eq 'pareto') {
      plot $points index num_series using 1:2 smooth unique with lines lw 2 lc rgb 'black' dt 2 \
            title 'Pareto front', \
        for [s=1:num_series] $points index s-1 using 1:2 with lines lw 1 \
            lc rgb colour(Colour[First[s]]) dt dashes(First[s]) notitle, \
        $points index 0:num_series-1 using 1:3:4:5 with points pt variable ps 0.9 lw 1.5 lc rgb variable notitle, \
        for [i_text in shown] keyentry with points pt shape(int(i_text)) lw 1.5 lc rgb '#444444' \
            title shape_title(int(i_text)), \
        for [v=1:num_values] keyentry with lines lw 6 lc rgb colour(v) title value_title(v), \
        for [m=1:more] keyentry with lines lw 6 lc rgb colour(9) title 'other '.unit
    } else {
      plot for [s=1:num_series] $points index s-1 using 1:2 smooth unique with lines lw 1.5 \
            lc rgb colour(Colour[First[s]]) dt dashes(First[s]) notitle, \
        $points index 0:num_series-1 using 1:3:4:5 with points pt variable ps 0.9 lw 1.5 lc rgb variable notitle, \
        for [i_text in shown] keyentry with linespoints pt shape(int(i_text)) lw 1.5 lc rgb '#444444' \
            dt dashes(int(i_text)) title shape_title(int(i_text)), \
        for [v=1:num_values] keyentry with lines lw 6 lc rgb colour(v) title value_title(v), \
        for [m=1:more] keyentry with lines lw 6 lc rgb colour(9) title 'other '.unit
    }
  }
  unset multiplot
  unset output
}
}
