# Recall against bytes a vector, from demo.sh's table. Variables: table, out (without ending), title.
set title "Recall of an exhaustive search: ".title noenhanced
set xlabel "bytes a vector"
set ylabel "10-recall\\@10"
# Axes from the points, and a little more, so that marks are whole.
set offsets graph 0.03, graph 0.03, graph 0.03, graph 0.03
set autoscale noextend
set key below
set bmargin 6
set grid
rows(codec, column) = (strcol(1) eq codec ? column : NaN)
codecs = system("awk '!/^#/ {print $1}' '".table."' | sort -u")
do for [terminal in "svg png"] {
    if (terminal eq "svg") {
        set terminal svg size 800,500 dynamic background rgb 'white'
    } else {
        set terminal pngcairo size 800,500
    }
    set output out.".".terminal
    plot for [i = 1:words(codecs)] table using (rows(word(codecs, i), $3)):4 with linespoints lw 2 pt 7 \
             title word(codecs, i)." by code alone", \
         for [i = 1:words(codecs)] table using (rows(word(codecs, i), $3)):5 with linespoints lw 2 pt 5 \
             title word(codecs, i)." refined, oversample 5"
    unset output
}
