# bash completion of hankel: verbs, then the options that `hankel VERB --help` lists, then files
_hankel() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null |
      sed -n 's/^  \([a-z]*\)  *.*/\1/p' | grep -v '^hankel$') help --help --version" -- "$word")
    return
  fi
  case $before in
    --layout) mapfile -t COMPREPLY < <(compgen -W "first last" -- "$word"); return ;;
    --isa) mapfile -t COMPREPLY < <(compgen -W "scalar neon avx2 avx512 amx" -- "$word"); return ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "cpu cuda" -- "$word"); return ;;
    --rigor) mapfile -t COMPREPLY < <(compgen -W "estimate measure patient" -- "$word"); return ;;
    --grad) mapfile -t COMPREPLY < <(compgen -W "input filter" -- "$word"); return ;;
    --math) mapfile -t COMPREPLY < <(compgen -W "fast tf32 split" -- "$word"); return ;;
    --with) mapfile -t COMPREPLY < <(compgen -W "late state user user2 store c_strides in_place f_zeros nonfinite flush like wisdom hostile alive" -- "$word"); return ;;
    --padding) mapfile -t COMPREPLY < <(compgen -W "valid same-upper same-lower causal" -- "$word"); return ;;
  esac
  case $word in
    --*) mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" "$verb" --help 2>/dev/null |
      sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}
complete -o filenames -F _hankel hankel
