# ruff: noqa: E501 - a command is easier to read, and to type again, on one line
"""Ordinary commands that leave the same files each time; each runs in bash, on the files of `make_inputs`."""

import random
from pathlib import Path

COMMANDS = {
    "cat": "cat numbers text > x; cat x x >> y; cat < y > z; cat -n numbers | tail -3",
    "cp": "cp numbers a; cp -r d e; cp -a d f; cp --reflink=auto text b; cp -l a hard; cp -s a soft; cp -u a b; cp -b a b",
    "cp sparse": "truncate -s 3M s; echo x >> s; cp --sparse=always s t; cp --sparse=never s u; cmp s t; cmp s u; wc -c s t u",
    "mv": "mv numbers a; mkdir m; mv a text m; mv m/a m/b; mv -T d m/e; ls -R; mv nothing x",
    "dd": "dd if=text of=a bs=100 status=none; dd if=text of=a bs=7 seek=3 count=5 conv=notrunc status=none; "
    "dd if=a of=b bs=1k conv=fsync,sync status=none; dd if=a of=c oflag=append conv=notrunc status=none; md5sum a b c",
    "dd direct": "dd if=/dev/zero of=a bs=4k count=9 oflag=direct status=none; dd if=a of=b bs=4k iflag=direct status=none; cmp a b",
    "truncate": "truncate -s 100 a; truncate -s +50 text; truncate -s 7 numbers; fallocate -l 5000 f; wc -c a text numbers f",
    "tee": "tee a b < numbers | wc -l; tee -a a < text > c; cmp c text",
    "split": "split -l 300 numbers part-; split -b 1k text piece-; cat part-* | cmp - numbers; csplit -s numbers 100 {3}",
    "sort": "sort -rn numbers > a; sort -o text2 text; sort -S 1M -T . big > b; sort -u -k1.2 -o a a; sort -c b; wc -l a b",
    "shuffled": "shuf --random-source=big numbers > a; shuf -n 5 --random-source=big -o b numbers; sort -n a | cmp - numbers",
    "text tools": "tr a-z A-Z < text > a; cut -c2-4 numbers | uniq -c | paste - - > b; join a b; comm -12 a text; fold -w 9 text > c; "
    "expand text | head -c 99; tac numbers > d2; nl numbers | tail -1; od -c text | tail -2; wc *",
    "sed in place": "sed -i s/1/2/ numbers; sed -i.orig '2,5d' text; sed -n 5p numbers > a; sed -i -e 's/x/y/w changed' big; ls",
    "awk": 'awk \'{s += $1; print $1 * 2 > "double"; print > "out" $1 % 3} END {print s; close("double")}\' numbers; wc out*',
    "grep and find": "grep -c 9 numbers; grep -rl some . > a; find . -type f -size +1k -exec md5sum {} + | sort > b; find d -name f* -delete; ls d",
    "diff and patch": "sed s/5/five/ numbers > n; diff -u --label a --label b numbers n > p; patch -s numbers < p; cmp numbers n; patch -R -s numbers < p; diff -r d d",
    "tar": "tar --mtime=@0 -cf t.tar d numbers; mkdir x; tar -xf t.tar -C x; tar --mtime=@0 -rf t.tar text; tar -tf t.tar; "
    "tar --mtime=@0 --warning=no-file-changed -czf z.tgz x; tar -xzOf z.tgz x/numbers | cmp - numbers; tar --delete -f t.tar text; gzip -dc z.tgz | md5sum",
    "cpio": "find d numbers | sort | cpio -o --quiet --reproducible > a; mkdir x; cd x; cpio -id --quiet < ../a; cmp numbers ../numbers; cpio -t < ../a",
    "pax": "mkdir x; pax -rw d x; ls -R x",
    "gzip": "gzip -nk numbers; gzip -n text; zcat text.gz | md5sum; gunzip text.gz; gzip -t numbers.gz; gzip -n -c d/* > all.gz; gunzip -f numbers.gz",
    "bzip2": "bzip2 -k numbers big; bunzip2 -c big.bz2 | cmp - big; bzip2 -t numbers.bz2; bunzip2 -f numbers.bz2",
    "xz": "xz -k numbers; xz -T2 -0 -k big; unxz -c big.xz | cmp - big; xz -t numbers.xz; unxz -f numbers.xz",
    "zstd": "zstd -q numbers big; zstd -dc big.zst | cmp - big; zstd -q --rm text; zstd -q -d text.zst; zstd -q -T2 -f big",
    "zip": "find . -exec touch -d @1000000000 {} +; zip -qrX a.zip d numbers; zip -qX a.zip text; zip -qd a.zip numbers; unzip -qo a.zip -d x; unzip -tq a.zip",
    "rsync": "rsync -r d/ e; echo more >> d/file0; rsync -r --inplace d/ e; rsync -r --delete --checksum e/ f; diff -r d f",
    "install": "install -m 640 numbers a; install -d x/y; install -D text x/y/z; install -b -m 600 text a; stat -c '%a %s' a x/y/z; ln a h; ln -s h s; stat -L -c %s s",
    "redirections": "echo a > q; echo b >> q; (echo c; cat text; echo d) > r; { echo 1; echo 2 >&2; } > s 2>&1; cat <<< here > t; cat 0<> numbers 1<> text > u; "
    "exec 3<> v; echo three >&3; echo four >&3; exec 3>&-; cat v; : > q; echo x | tee q > /dev/null",
    "here documents": "cat > a << END\n$(seq 2000)\nEND\nread x < a; echo $x; mapfile -t all < numbers; echo ${#all[@]}; while read n; do echo $n; done < a > b; wc b",
    "background": "for i in 1 2 3 4; do (for j in 1 2 3; do echo $i >> log; done) & done; wait; sort -o log log; cat log; { sleep 0.1; echo late; } > late & wait; cat late",
    "printing at once": "printf '%s\\n' a b > x; printf c >> x; echo -n d >> x; dash -c 'echo e >> x; echo f > y; cat x y; exec 4> z; echo g >&4'; cat z",
    "same file": "cat numbers > numbers; cat numbers; sort -rn big | head -5 > big2; cat text >> text; echo new > text; cat text",
    "noclobber": "set -C; echo a > new; echo b > new; echo c >| new; cat new; set +C; mkdir x; echo d > x; echo e > x/y/z; echo f > /dev/full",
    "signals": "sh -c 'kill -SEGV $$' 2> /dev/null; echo $?; yes | head -1; echo ${PIPESTATUS[@]}; sh -c 'echo a > b; kill -KILL $$'; cat b; kill -TERM $$",
    "permissions": "umask 027; echo a > b; chmod 400 b; chmod +x a.sh; ./a.sh > c; ./a.sh >> c; cp a.sh e.sh; ./e.sh; stat -c %a b c e.sh; chmod u+s c",
    "times": "touch -d @1000000000 numbers; touch -r numbers text; echo x >> text; touch -d @1100000000.5 text; cp -p text a; stat -c %Y numbers text a; test a -nt numbers; echo $?",
    "temporary": "f=$(mktemp ./tmpXXXXXX); echo a > $f; mv $f named; d=$(mktemp -d ./dirXXXXXX); cp named $d/x; cat $d/x; rm -r $d; cat named",
    "cc": "gcc -O1 a.c -o a; ./a; echo $?; gcc -c a.c -o b.o; ar rcD l.a b.o; gcc l.a -o c; strip c; ./c; objcopy --only-keep-debug a g; size a > /dev/null; rm g",
    "make": "make -s -j2 all; touch a.c; make -s all; make -s missing; ./built; make -s clean; ls",
    "shared library": "gcc -shared -fPIC -o libx.so x.c; gcc -o y y.c -L. -lx -Wl,-rpath,.; ./y; readelf -d libx.so | grep -c SONAME",
    "perl": 'perl -e \'open F, "+>", "f"; print F "abc\\n"; seek F, 1, 0; print F "B"; seek F, 0, 0; print <F>; truncate F, 2; close F; '
    'open STDOUT, ">", "g"; print "in g\\n"; system "echo child"; open STDOUT, ">>", "g"; print "more\\n"\'; perl -pi -e s/1/x/ numbers; cat f g',
    "python files": "python3 files.py; python3 files.py again",
    "python processes": "python3 processes.py",
    "python zip": "python3 -m zipfile -c a.zip d numbers && python3 -m zipfile -e a.zip x && python3 -m tarfile -c a.tar d && python3 -m tarfile -l a.tar; rm a.zip a.tar",
    "python database": "python3 database.py; rm -f b.db*",
    "sqlite3": 'sqlite3 x.db "create table t(a, b); insert into t select 1, hex(zeroblob(3000)); pragma integrity_check"; sqlite3 x.db .dump > dump; '
    'sqlite3 y.db < dump; sqlite3 y.db "update t set a = 2; vacuum; select a, length(b) from t"; sqlite3 x.db "pragma journal_mode=truncate; delete from t; select count(*) from t"',
    "sqlite3 write-ahead": 'sqlite3 w.db "pragma journal_mode=wal; create table t(a); begin; insert into t values (1), (2); commit; select sum(a) from t"; '
    'sqlite3 w.db "insert into t values (3); pragma wal_checkpoint; select count(*) from t; pragma integrity_check"; rm -f w.db*',
    "git": "git init -q r && cd r && cp ../numbers ../a.c . && git add . && git commit -qm x && git log --oneline && sed -i s/1/2/ numbers && git commit -qam y && "
    "git diff HEAD~ | md5sum && git checkout -q -b side HEAD~ && echo z > z && git add z && git commit -qm z && git merge -q -m m master && git gc -q && git fsck && "
    "git clone -q . ../clone && git stash list && git archive HEAD | tar -t && cd .. && rm -rf r/.git clone/.git",
    "fio": "fio --name=j --size=512k --rw=randwrite --bs=4k --filename=f --output=/dev/null --buffer_pattern=7 --thread --numjobs=4; rm -f *.state",
    "fio verified": "fio --name=j --size=256k --rw=write --verify=crc32c --do_verify=1 --filename=f --output=/dev/null; fio --name=m --size=128k --rw=randwrite "
    "--ioengine=mmap --filename=g --buffer_pattern=3 --output=/dev/null; rm -f *.state f",
    "fio vectors": "fio --name=v --size=128k --rw=write --ioengine=pvsync2 --filename=h --buffer_pattern=5 --output=/dev/null; fio --name=p --size=128k --rw=write "
    "--ioengine=posixaio --filename=i --buffer_pattern=9 --output=/dev/null; fio --name=s --size=64k --rw=read --ioengine=splice --filename=h --output=/dev/null; rm -f *.state",
    "kernel's own asynchronous": "fio --name=l --size=128k --rw=write --ioengine=libaio --filename=k --buffer_pattern=5 --output=/dev/null; "
    "fio --name=u --size=128k --rw=write --ioengine=io_uring --filename=n --buffer_pattern=6 --output=/dev/null; rm -f *.state",
    "flock": "for i in 1 2 3 4 5; do flock lock sh -c 'n=$(cat n 2> /dev/null || echo 0); echo $((n + 1)) > n' & done; wait; cat n; flock -n lock echo got",
    "hdf5 tools": "h5import 2>&1 | head -1; h5dump numbers; echo $?",
    "editors": "printf '1d\\nw\\nq\\n' | ed -s numbers; ex -s text << END\n1s/some/other/\nwq\nEND\nhead -c 50 text",
    "logs": "logger --no-act -s hi 2> /dev/null; script -qc 'echo typed' typescript > /dev/null; wc -l < typescript; rm typescript",
}
NEEDS = {
    "cpio": "cpio", "pax": "pax", "rsync": "rsync", "fio": "fio", "fio verified": "fio", "fio vectors": "fio", "kernel's own asynchronous": "fio",
    "editors": "ed", "hdf5 tools": "h5dump", "logs": "script", "git": "git", "sqlite3": "sqlite3", "sqlite3 write-ahead": "sqlite3", "perl": "perl",
    "zip": "zip", "xz": "xz", "zstd": "zstd", "bzip2": "bzip2", "diff and patch": "patch", "cc": "gcc", "make": "make", "shared library": "gcc",
}  # fmt: skip
"""Programs that may be missing."""

FILES = """
import mmap, os, shutil, sys, tempfile
with open("new", "w+b") as file, tempfile.TemporaryFile(dir=".") as other:
    file.write(b"x" * 100_000)
    file.seek(50)
    file.write(b"y")
    file.flush()
    with mmap.mmap(file.fileno(), 0) as mapped:
        print(mapped[49:52])
        mapped[60] = 90
    other.write(b"z")
    file.seek(58)
    print(file.read(5))
with open("text", "a+", encoding="utf-8") as file:
    file.write("gr\\u00fc\\u00df")
    file.seek(0)
    print(len(file.read()))
    file.truncate(1000)
shutil.copytree("d", "copied", dirs_exist_ok=True)
shutil.copyfile("numbers", "numbers2")
shutil.make_archive("archive", "tar", "d")
os.unlink("archive.tar")
with open("numbers2", "r+", buffering=1) as file:
    print(file.readline(), end="")
    file.seek(0, 2)
    print("line", file=file)
    os.posix_fallocate(file.fileno(), 0, 20_000)
    os.ftruncate(file.fileno(), 9000)
fd = os.open("direct", os.O_RDWR | os.O_CREAT)
print(os.pwritev(fd, [b"a", b"bc"], 5), os.preadv(fd, [bytearray(3)], 4), os.sendfile(fd, os.open("text", 0), 3, 100))
os.dup2(fd, 1)
print("by print")
os.system("echo by echo")
"""
PROCESSES = """
import multiprocessing, os, subprocess, sys, threading
def work(number):
    with open(f"part{number}", "w") as file:
        file.write("x" * number)
    return os.path.getsize(f"part{number}")
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(5)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, range(5, 7)))
    with open("out", "w") as out:
        out.write("before")
        out.flush()
        subprocess.run(["echo", "child"], stdout=out)
        subprocess.run(["sh", "-c", "echo error >&2; echo shell"], stdout=out, stderr=subprocess.STDOUT, close_fds=False)
        out.write("after")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(10, 30)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    child = os.fork()
    if child == 0:
        os.closerange(3, 2000)
        with open("of child", "w") as file:
            file.write("child")
        os._exit(3)
    print(os.waitpid(child, 0)[1], open("of child").read(), open("out").read())
    os.closerange(0, 3)
    fds = [os.open(f"low{i}", os.O_WRONLY | os.O_CREAT) for i in range(3)]
    [os.write(fd, b"data") for fd in fds]
    os.execvp("cat", ["cat", "out"])
"""
DATABASE = """
import sqlite3
for mode in ("delete", "wal"):
    base = sqlite3.connect(f"b.db{mode}")
    print(base.execute(f"pragma journal_mode={mode}").fetchone())
    base.execute("create table t(a integer primary key, b text)")
    base.executemany("insert into t(b) values (?)", [(str(i) * 50,) for i in range(1500)])
    base.commit()
    base.execute("delete from t where a % 3 = 0")
    base.rollback()
    base.execute("update t set b = b || 'x' where a % 7 = 0")
    base.commit()
    other = sqlite3.connect(f"b.db{mode}")
    print(other.execute("select count(*), sum(length(b)) from t").fetchone())
    print(other.execute("pragma integrity_check").fetchone())
    base.execute("vacuum")
"""


def make_inputs(folder: Path) -> None:
    """The files that commands work on."""
    (folder / "numbers").write_text("".join(f"{number}\n" for number in range(2000)))
    (folder / "text").write_bytes(b"some text without end of line" * 1000)
    draw = random.Random(1)
    (folder / "big").write_text("".join(f"{draw.random()}\n" for _ in range(20_000)))
    (folder / "d").mkdir()
    for number in range(5):
        (folder / "d" / f"file{number}").write_bytes(draw.randbytes(7000 * number))
    (folder / "a.sh").write_text("#!/bin/sh\necho started\n")
    (folder / "a.c").write_text('#include <stdio.h>\nint main(void) { puts("hi"); return 3; }\n')
    (folder / "x.c").write_text("int twice(int x) { return 2 * x; }\n")
    (folder / "y.c").write_text("int twice(int x);\nint main(void) { return twice(4); }\n")
    (folder / "Makefile").write_text("all: built\nbuilt: a.c x.o\n\tcc -o built a.c x.o\nclean:\n\trm -f built x.o\n")
    for name, text in (("files", FILES), ("processes", PROCESSES), ("database", DATABASE)):
        (folder / f"{name}.py").write_text(text)
