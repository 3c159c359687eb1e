"""scripts/fit_cost.py joins runs of one record: the fastest time of each candidate, without what is far from the best."""
import os
import subprocess
import sys

HEAD = "# machine: X; isa: avx2; threads: 1; epilogue: none; time: thread\nproblem,decision,predicted_us,us\n"
SCRIPT = os.path.join(os.environ.get("HANKEL_SOURCE_DIR", "."), "scripts", "fit_cost.py")


def join(*paths):
    return subprocess.run([sys.executable, SCRIPT, "--join", *paths], capture_output=True, text=True, check=False)


def test_join_keeps_the_fastest(tmp_path):
    one, two, other = tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "other.csv"
    one.write_text(HEAD + "p,a,10,9\n,b,11,8\n,far,99,99\nq,a,1,1\n")
    two.write_text(HEAD + "p,a,10,7\n,b,11,12\n,far,99,98\nq,a,1,2\n")
    other.write_text(HEAD.replace("avx2", "avx512") + "p,a,10,7\n")
    joined = join(str(one), str(two))
    assert joined.returncode == 0, joined.stderr
    assert joined.stdout == HEAD + "p,a,10,7\n,b,11,8\nq,a,1,1\n"
    assert join(str(one), str(other)).returncode != 0
