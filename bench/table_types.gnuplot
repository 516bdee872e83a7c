# Recall against queries a second by type of table, from lines of product_code_speed.py: "| pq CODE TYPE | lists | candidates | recall | rate |".
# Variables: table (file), out (file), name (of the data).
# gnuplot -e "table='speed.md'; out='table_types.svg'; name='SIFT'" bench/table_types.gnuplot
set terminal svg size 1000,480 dynamic background rgb 'white' font 'sans,14'
set output out
set datafile separator "|"
set grid lt 1 lw 0.5 lc rgb '#d8d8d8'
types = "float32 float16 e5m3 e4m4"
colors = "#1b6ca8 #2a9d5c #c2571a #8a5ad6"
rows(code, type) = "< grep '^| pq ".code." ".type." |' ".table." | tr -d ,"
set ylabel "10-recall@10" noenhanced
set xlabel "queries a second of CPU time, one thread"
set logscale x
set key bottom left
set multiplot layout 1,2
do for [code in "32x8 64x4"] {
    set title name.", ".(code eq "32x8" ? "32 subspaces of 8 bits" : "64 subspaces of 4 bits")
    plot for [i = 1:4] rows(code, word(types, i)) using 6:5 with linespoints pt 7 ps 0.6 lw 2 lc rgb word(colors, i) \
             title word(types, i)
}
unset multiplot
