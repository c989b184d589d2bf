#!/usr/bin/env bash
# The gate: format, vet, the race detector over what runs concurrently, then
# every test with the real engine and models. Arguments go to both go tests.
. "$(dirname "$0")/fetch.sh"
cd "$root"

"$root/scripts/need.sh" test
"$root/scripts/engine.sh" >/dev/null
"$root/scripts/models.sh" >/dev/null

unformatted=$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l)
[[ -z $unformatted ]] || die "not formatted; run gofmt -w on: $unformatted"

status=0
say "go vet"
go vet ./...

# The detector needs a C compiler and something to detect: packages that start
# goroutines or share memory. Left out is the real engine: its threads are C's,
# and a tenth of its speed proves nothing.
if command -v gcc >/dev/null || command -v clang >/dev/null; then
	mapfile -t racy < <(git grep --untracked -lE '^\s+go [a-z]|"sync(/atomic)?"|\.Go\(' -- '*.go' ':!*/testdata/*' |
		xargs -n1 dirname | sort -u | grep -vxE '\.|devices/engine/llama|scripts/.*')
	say "go test -race: ${#racy[@]} packages"
	CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations" go test -race -short -timeout 5m "$@" "${racy[@]/#/./}" || status=1
else
	say "no C compiler: the tests with the race detector are left out (Debian package gcc)"
fi

say "go test"
CGO_ENABLED=0 go test -timeout 8m "$@" ./... || status=1
exit "$status"
