#!/usr/bin/env bash
# Rewrites the golden scripts of every package that has some.
. "$(dirname "$0")/fetch.sh"
cd "$root"

mapfile -t packages < <(git grep --untracked -l 'cockroachdb/datadriven' -- '*_test.go' | xargs -r -n1 dirname | sort -u)
for p in "${packages[@]}"; do
	go test -count=1 "./$p" -rewrite
done
git --no-pager diff --stat
