# The tuned program: sh program.sh TRACE A B D
# It writes a line to TRACE when it starts and one when its work is done, each with the name of its run folder
# (its output is a file there) and its configuration, and prints a number that only this configuration gives.
folder=$(readlink "/proc/$$/fd/1")
folder=${folder%/stdout}
key=${folder##*/}
echo "started $key $2 $3 $4" >>"$1"
sleep "0.$((100 + 40 * $4))"
read -r supervisor _ <"$folder/claimed"
read -r _ _ _ parent _ <"/proc/$$/stat"
if [ "$parent" != "$supervisor" ]; then
    exec sleep 600 # its supervisor died: luthier has to kill this program
fi
echo "value: $((100 * $2 + 10 * $3 + $4))"
echo "finished $key $2 $3 $4" >>"$1"
