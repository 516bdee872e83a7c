# Precision and candidates against extra distance. Variables: table, out (without ending), title.
set title "XFBQ, 3 x 4 bits: ".title noenhanced
set xlabel "extra distance"
set ylabel "precision (share of the true k found)"
set y2label "candidates a query"
set yrange [0:1.02]
set ytics nomirror
set y2tics
set logscale y2
set key bottom right
set grid
do for [terminal in "svg png"] {
    if (terminal eq "svg") {
        set terminal svg size 800,500 dynamic background rgb 'white'
    } else {
        set terminal pngcairo size 800,500
    }
    set output out.".".terminal
    plot table using 1:2 with linespoints lw 2 pt 7 title "precision, k = 10", \
         table using 1:4 with linespoints lw 2 pt 5 title "precision, k = 100", \
         table using 1:3 axes x1y2 with lines dt 2 title "candidates, k = 10", \
         table using 1:5 axes x1y2 with lines dt 3 title "candidates, k = 100"
    unset output
}
