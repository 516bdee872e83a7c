# Rates against recall, from 0.6 on the left, its end on the right. Variables: data (a block for
# every series, its name first), num_series, num_peers (these come first), out (without ending),
# title_text, recall_name.
set logscale y
set grid xtics ytics mytics lt 1 lc rgb "#d0d0d0"
set xlabel recall_name noenhanced
set tmargin screen 0.92
stats data using 2 nooutput
low = 0.7 * STATS_min
high = 1.4 * STATS_max
set yrange [low : high]
set ytics ()
do for [power = 0:7] {
    do for [digit in "1 2 5"] {
        value = digit * 10.0 ** power
        if (value > low && value < high) { set ytics add (sprintf("%.0f", value) value) }
    }
}
cold = "#1f77b4 #17a2b8 #7e57c2 #303030 #2ca02c #795548 #909090 #1a237e"
warm = "#f4a300 #a0522d #ff6f61 #e83e8c #7a0048 #d00000 #5c1a1a"
color(i) = i > num_peers ? word(warm, (i - num_peers - 1) % 7 + 1) : word(cold, (i - 1) % 8 + 1)
shape(i) = i > num_peers ? 5 + 2 * ((i - num_peers - 1) % 5) : 4 + 2 * ((i - 1) % 5)
width(i) = i > num_peers ? 2.5 : 1.5
dash(i) = i > num_peers ? 1 : 2
tall = num_series > 24 ? 70 + 24 * num_series : 640  # the key has a line for every series
do for [terminal in "svg png"] {
    if (terminal eq "svg") {
        set terminal svg size 1300,tall dynamic background rgb 'white'
    } else {
        set terminal pngcairo size 1300,tall
    }
    set output out.".".terminal
    set multiplot title title_text noenhanced
    set lmargin screen 0.08
    set rmargin screen 0.34
    set xrange [0.6:1.01]
    set xtics auto
    set ylabel "queries/s" offset 0.5,0
    unset key
    plot for [i = 1:num_series] data index i - 1 using 1:2 with linespoints \
             lw width(i) dt dash(i) ps 1 pt shape(i) lc rgb color(i)
    set lmargin screen 0.39
    set rmargin screen 0.67
    set xrange [0.97:1.001]
    set xtics 0.01
    unset ylabel
    set key noenhanced at screen 0.68, screen 0.92 left top Left reverse samplen 3 spacing 1.3
    plot for [i = 1:num_series] data index i - 1 using 1:2 with linespoints \
             lw width(i) dt dash(i) ps 1 pt shape(i) lc rgb color(i) title columnheader(1)
    unset multiplot
    unset output
}
