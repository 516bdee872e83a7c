# Every engine's best rates against recall, 0.9 to 1. Variables as in peer_recall.gnuplot.
set logscale y
set grid xtics ytics mytics lt 1 lc rgb "#d0d0d0"
set xlabel recall_name noenhanced
set ylabel "queries/s"
set title title_text noenhanced
set key bottom left Left reverse noenhanced
set xrange [0.9:1.001]
set xtics 0.01
colors = "#1f77b4 #2ca02c #7e57c2 #f4a300"
color(i) = i > num_peers ? "#d00000" : word(colors, (i - 1) % 4 + 1)
do for [terminal in "svg png"] {
    if (terminal eq "svg") {
        set terminal svg size 900,600 dynamic background rgb 'white'
    } else {
        set terminal pngcairo size 900,600
    }
    set output out.".".terminal
    plot for [i = 1:num_series] data index i - 1 using 1:2 with linespoints \
             lw (i > num_peers ? 3 : 2) pt 5 + 2 * ((i - 1) % 5) ps 0.7 lc rgb color(i) \
             title columnheader(1)
    unset output
}
