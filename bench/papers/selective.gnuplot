# R1@100 of entries within a radius, from a table of bench/papers/selective.sh: against the entries that are
# looked up (left) and against CPU time (right).
# Variables: table (file), out (file), name (of the data).
# gnuplot -e "table='sift.md'; out='selective.svg'; name='SIFT'" bench/papers/selective.gnuplot
set terminal svg size 1200,560 dynamic background rgb 'white' font 'sans,14'
set output out
set datafile separator "|"
set grid lt 1 lw 0.5 lc rgb '#d8d8d8'
prefixes = "'H, radius' 'M, radius' 'L, radius' 'H, small' 'H, large'"
titles = "'H, dynamic radius' 'M, dynamic' 'L, dynamic' 'H, small static' 'H, large static'"
colors = "#1b6ca8 #2a9d5c #c2571a #8a8a8a #b59ad6"
is(i) = strstrt(strcol(2), word(prefixes, i)) > 0
rows = "< grep -E '^[|] (all|[HML],) ' ".table
full = real(system("sed -n 's/^| all |[^|]*|[^|]*| *\\([0-9.]*\\).*/\\1/p' ".table))
set ylabel "the nearest is among the 100 (R1@100)" noenhanced
set yrange [0.4:1]
set key below maxrows 2
set multiplot layout 1,2
set title name.": what is within the radius"
set xlabel "share of entries within the radius"
set xrange [0:1]
plot full with lines lw 1.5 dt 2 lc rgb '#303030' title "all entries", 0.95 with lines dt 3 lc rgb '#808080' notitle, \
     for [i = 1:5] rows using (is(i) ? column(3) : NaN):5 with linespoints pt 7 ps 0.6 lw 2 \
         lc rgb word(colors, i) title word(titles, i)
set title name.": time, one thread"
set xlabel "CPU seconds"
set xrange [0:*]
plot rows using (strlen(strcol(2)) < 6 ? column(7) : NaN):5 with points pt 5 ps 1.2 lc rgb '#303030' title "all entries", \
     0.95 with lines dt 3 lc rgb '#808080' notitle, \
     for [i = 1:5] rows using (is(i) ? column(7) : NaN):5 with points pt 7 ps 0.8 \
         lc rgb word(colors, i) title word(titles, i)
unset multiplot
