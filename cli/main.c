/* The program `hankel`: finds the verb and hands it its words. Exit codes: 0 ok, 1 mismatch or failure, 2 usage,
 * 3 unsupported. */
#include <string.h>

#include "cli.h"

static const cli_verb verbs[] = {
    {"info", "info [--json]", "the CPU, its measured peak and bandwidth, and the GPU if any", cli_info},
    {"plan", "plan PROBLEM [options]", "what would run, why, and the symbol table", cli_plan},
    {"run", "run [PROBLEM] --x X.npy --f F.npy --out Y.npy [options]", "computes one convolution on .npy files",
     cli_run},
    {"check", "check PROBLEM | --batch FILE | --random N [options]", "every decision against the reference", cli_check},
    {"bench", "bench PROBLEM | --batch FILE | --stream [options]", "times problems", cli_bench},
    {"tune", "tune PROBLEM | --batch FILE | --random N [options]", "measures candidates and keeps the wisdom",
     cli_tune},
    {"wisdom", "wisdom [export | path | import FILE...] [options]", "what measuring taught, as text", cli_wisdom},
    {"compare", "compare OLD.json NEW.json [options]", "what got slower between two outputs of bench --json",
     cli_compare},
    {"demo", "demo", "one problem of each kind of user, verified and timed", cli_demo},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void help(FILE *file) {
  fprintf(file, "hankel %s: convolution by implicit GEMM\n\nusage: hankel VERB [options]\n\n", hk_version());
  for (int i = 0; i < VERBS; i++) fprintf(file, "  %-7s %s\n", verbs[i].name, verbs[i].summary);
  fprintf(file, "\n  hankel VERB --help   the options of a verb\n  hankel --version     the version\n\n"
                "PROBLEM is one word, e.g. 2d_n1_c64_i56x56_k64_w3x3_s1_p1_d1_g1_f32_last, or oneDNN's\n"
                "benchdnn form, e.g. mb1ic64ih56oc64oh56kh3ph1.\n");
}

static const cli_verb *verb_find(const char *name) {
  for (int i = 0; i < VERBS; i++)
    if (!strcmp(verbs[i].name, name)) return &verbs[i];
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return CLI_USAGE;
  }
  if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
    printf("hankel %s\n", hk_version());
    return CLI_OK;
  }
  bool asked = !strcmp(argv[1], "help");
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || (asked && argc == 2)) {
    help(stdout);
    return CLI_OK;
  }
  const cli_verb *verb = verb_find(argv[asked ? 2 : 1]);
  if (!verb) {
    cli_error("no verb '%s'; hankel --help lists them", argv[asked ? 2 : 1]);
    return CLI_USAGE;
  }
  char *help_words[] = {argv[1], "--help", NULL};
  int code = asked ? verb->main(verb, 2, help_words) : verb->main(verb, argc - 1, argv + 1);
  if (fflush(stdout) || ferror(stdout)) {
    cli_error("stdout could not be written");
    return CLI_FAILED;
  }
  return code;
}
