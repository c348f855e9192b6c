# Runs the benchmarks of this checkout; programs to compare with get environments of their own on first use.
#   make bench                       everything (an hour or so); NAMES="cobre comm_shm" for some of it
#   make bench QUICK=--quick         whether everything works
PYTHON ?= python3
NAMES ?=
QUICK ?=
OUTPUT ?= bench-results
# A case directory of the four regions to compare on; without it, the bundled example.
export PYCOBRE_BENCH_CASE ?= $(wildcard ../shared/cases/4ree)

.PHONY: bench
bench:
	$(PYTHON) -m benchmarks $(NAMES) $(QUICK) --output $(OUTPUT)
