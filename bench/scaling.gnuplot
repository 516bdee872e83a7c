# Left: searches with fixed work a rank, measured and predicted. Right: predicted queries a second to 1,024 ranks.
# Variables: check, predicted, out (without ending), rows, threads, cores, limit.
set datafile separator "\t"
set grid lt 1 lw 0.5 lc rgb '#d8d8d8'
set logscale x 2
set xlabel "ranks"
of(series, column) = (strcol(1) eq series ? column : NaN)
colors = "#1b6ca8 #2a9d5c #c2571a"
do for [terminal in "svg png"] {
    if (terminal eq "svg") {
        set terminal svg size 1200,560 dynamic background rgb 'white' font 'sans,14'
    } else {
        set terminal pngcairo size 1200,560 font 'sans,11'
    }
    set output out.".".terminal
    set multiplot
    set size 0.4,1
    set origin 0,0
    set title "Fixed work: ".rows." rows a rank,\nranks of ".threads." thread(s) on ".cores." cores"
    set ylabel "milliseconds of a batch of 1,000 queries"
    stats check using (1000 * $2) nooutput
    set xrange [0.8:10]
    set yrange [STATS_min / 3:STATS_max * 1.7]
    set logscale y 2
    set format y "%.0f"
    set key inside bottom right
    plot check using 1:(1000 * $3) with lines lw 2 lc rgb '#c2571a' title "predicted", \
         check using 1:(1000 * $3 * (1 + limit / 100.)) with lines lw 1.5 dt 3 lc rgb '#c2571a' \
             title "+- ".limit." %", \
         check using 1:(1000 * $3 * (1 - limit / 100.)) with lines lw 1.5 dt 3 lc rgb '#c2571a' notitle, \
         check using 1:(1000 * $2) with points pt 7 ps 1 lc rgb '#1b6ca8' title "measured"
    set size 0.6,1
    set origin 0.4,0
    set title "Predicted: all rows on so many ranks,\n96 dims, 3 bits, k 10, batches of 1,000"
    set ylabel "queries a second"
    set xrange [0.8:1300]
    set yrange [*:*]
    set logscale y 10
    set format y "10^{%L}"
    set key outside right center
    exponents = "9 10 11"
    plot for [i = 1:3] predicted using (of("GPU 10^".word(exponents, i), $2)):3 with linespoints pt 4 lw 2 dt 2 \
             lc rgb word(colors, i) title "10^{".word(exponents, i)."} rows, H200 scan limit", \
         for [i = 1:3] predicted using (of("CPU 10^".word(exponents, i), $2)):3 with linespoints pt 7 ps 0.7 lw 2 \
             lc rgb word(colors, i) title "10^{".word(exponents, i)."} rows, CPU, one thread"
    unset multiplot
    unset output
}
