# The short way in. CMake does the building; each target here installs what it
# needs first (tools/install_packages) and asks nothing.
.POSIX:
.PHONY: run test test-all test-long test-peers bench bench-peers bench-ladder models wasm web format check clean

run:
	@tools/install_packages build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target attend-cli
	build/release/attend explain

test:
	@tools/install_packages build test
	@tools/run_tests test

# Beyond test: thread sanitizer, other compilers and processors, torture, fuzzing.
test-all:
	@tools/install_packages build test test-all
	@tools/run_tests test-all

# Before a release: exhaustive sweeps, long fuzzing. Takes hours.
test-long:
	@tools/install_packages build test test-all
	@tools/run_tests test-long

# What attend writes, in other people's programs. Needs node and npm.
test-peers:
	@tools/install_packages build test
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target attend-cli
	@npm install --prefix build/peers --ignore-scripts --no-audit --no-fund node-llama-cpp@3.22.1 \
		tokenizers@0.23.2 @huggingface/jinja@0.5.11 @huggingface/ollama-utils@0.0.18
	tests/peers/gguf_in_llama build/release/attend build/peers/node_modules
	tests/peers/encoders_in_llama build/release/attend build/peers/node_modules
	tests/peers/types_in_ggml build/release/attend build/peers/node_modules
	node tests/peers/tokenizers_in_hf.mjs build/release/attend build/peers/node_modules \
		../shared/text/tinyshakespeare.txt ../shared
	node tests/peers/chat_in_jinja.mjs build/release/attend build/peers/node_modules \
		../shared/golden_models/stories260k/hf

bench:
	@tools/install_packages build bench
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target attend-cli
	build/release/attend bench

# attend and other libraries on the same shapes, in turn (bench/peers/README.md).
bench-peers:
	@tools/install_packages build
	@bench/peers/install
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target attend-cli peer_attend peer_ggml peer_model peer_llama
	bench/peers/compare
	bench/peers/gradients
	bench/peers/models

# From the formula to the library, step by step (docs/ladder/attention.md).
bench-ladder:
	@tools/install_packages build
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target bench-ladder
	build/release/bench/bench-ladder

# The trained models of models/ from nothing: the bits must be those that ship.
models:
	@tools/install_packages build models
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target attend-cli
	python3 models/rebuild.py build/release/attend

# The module for JavaScript: build/wasm/attend.wasm, used through wasm/attend.mjs.
wasm:
	@tools/install_packages wasm
	@cmake --preset wasm >/dev/null
	@cmake --build --preset wasm --target attend-wasm
	@ls -l build/wasm/attend.wasm

web:
	@echo "make web: the page is not part of attend yet" >&2; exit 1

# Quick checks of the sources, without building.
check:
	@tools/install_packages test
	@tools/check_style

format:
	@tools/install_packages test
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i
	@echo "make format: done"

clean:
	rm -rf build
