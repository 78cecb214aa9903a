PREFIX ?= /usr/local
DESTDIR ?=
SWIFT ?= swift

# The Swift runtime goes into the program, so that the installed binary needs no toolchain; libcurl and zlib stay
# shared, so that the distribution's security updates reach it (libcurl is loaded by Sources/CCurl, not linked). lld:
# GNU gold would warn of a function in the runtime's archive that we don't call.
RELEASE = -c release --static-swift-stdlib --disable-local-rpath -Xswiftc -use-ld=lld \
  -Xlinker -s -Xlinker --icf=safe -Xlinker --no-export-dynamic
PROGRAM = .build/release/spoolrun
# Which manuals are installed on this machine says nothing of ours.
UNINSTALLED = 'STYLE: referenced manual not found'
SCRIPTS = .ci/run Benchmarks/setup Torture/powercut/setup Torture/realservers/setup scripts/demo scripts/fuzz scripts/loopback \
  scripts/sanitize scripts/setup contrib/spoolrun-inotify contrib/lists/ena Models/check
COMPLETIONS = bash-completion/completions/spoolrun zsh/site-functions/_spoolrun fish/vendor_completions.d/spoolrun.fish

# More options of `swift build`.
BUILD_FLAGS ?=

all:
	$(SWIFT) build $(BUILD_FLAGS) $(RELEASE) --product spoolrun

demo: setup-demo all
	scripts/demo $(PROGRAM)

# The picture of the README: records a session in a terminal.
picture: all
	scripts/picture $(PROGRAM) >docs/terminal.svg.new
	mv docs/terminal.svg.new docs/terminal.svg

# The number of tests that run at a time. Without it swift-testing starts all of them at once, and on few cores each of them waits for minutes.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 16

# After each change: less than a minute beyond the build. All tests but those that take most of the time (Tests/README.md), and lint.
UNCHECKED = CrashMatrixTests LyingServerTests CronTests DropToolTests FloodTests LongBacklogTests SeveralUsersTests
check: setup build-tests
	$(SWIFT) test --skip-build --disable-xctest $(UNCHECKED:%=--skip %)
	$(MAKE) -o setup lint

test: setup build-tests
	$(SWIFT) test --skip-build --disable-xctest

# The crash matrix starts its worker some ten thousand times. With the runtime inside it, a start takes a third of the time.
build-tests:
	$(SWIFT) build --build-tests
	$(MAKE) crash-rig

crash-rig:
	$(SWIFT) build --static-swift-stdlib --product FaultRig

lint: setup
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests
	! mandoc -Tlint man/spoolrun.1 man/spool.5 man/spoolrun-log.7 2>/dev/null | grep -v $(UNINSTALLED)
	shellcheck $(SCRIPTS)
	pyflakes3 Benchmarks Torture scripts/nginx.py scripts/picture contrib/lists/zenodo contrib/lists/pooch contrib/lists/huggingface

format:
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests

# The protocol's model, all states of each configuration; MODEL=bounded leaves out the two that take half of the time.
MODEL ?= whole
model: setup
	Models/check $(MODEL)

# libFuzzer on each reader of strangers' bytes, for SECONDS of CPU each.
SECONDS ?= 60
fuzz: setup
	scripts/fuzz $(SECONDS)

# The tests under ThreadSanitizer and AddressSanitizer, and the worker under valgrind.
sanitize: setup
	scripts/sanitize

# What takes long and finds what tests don't, three hours of it; at the end a table. PARTS="crowd pairs" plays these alone.
PARTS ?=
torture:
	python3 -B Torture/torture.py $(PARTS)

# Other tools before the servers that lie in the tests. Writes Torture/PEERS.md; README's table is copied from it.
peers: setup all
	Benchmarks/setup
	$(SWIFT) build --product LyingServer
	python3 -B Torture/peers --program $(PROGRAM) --server .build/debug/LyingServer

# Workers killed, stopped and replaced at random; CROWD="--jobs 10000 --seed 7" says how long and in which order.
CROWD ?= --jobs 10000
crowd: setup all
	python3 -B Torture/endure/crowd.py --program $(PROGRAM) $(CROWD)

# The same on hosts that don't see each other's locks, as on some network file systems: two FUSE mounts of the spool. Needs root and /dev/fuse;
# without them it says so and does nothing.
CROWD_APART ?= --jobs 2000 --locks apart
crowd-apart: setup all
	scripts/setup bindfs
	python3 -B Torture/endure/crowd.py --program $(PROGRAM) $(CROWD_APART)

# A proxy between nginx and the worker that damages frames of HTTP/2 at random; FRAMES="--seed 7 --seeds 1" plays one seed again. Debian's
# Python, which has Debian's HPACK.
FRAMES ?= --minutes 10
frames: setup all
	/usr/bin/python3 -B Torture/frames --program $(PROGRAM) $(FRAMES)

# Jobs before a server that answers at random, each trial drawn by a seed. What fails is made smaller and shown; Torture/random --trial N plays one
# trial alone.
TRIALS ?= 2000
SEED ?= 1
random: setup all
	python3 -B Torture/random --program $(PROGRAM) --trials $(TRIALS) --seed $(SEED)

# The same with mistakes in the program, each of which has to be found.
random-self-test: setup all
	python3 -B Torture/random --self-test

# Two faults in one spool's life, drawn by a seed. CRASH_PAIR=77 beside it plays that pair alone.
CRASH_PAIRS ?= 10000
CRASH_SEED ?= 1
pairs: setup build-tests
	CRASH_PAIRS=$(CRASH_PAIRS) CRASH_SEED=$(CRASH_SEED) $(SWIFT) test --skip-build --disable-xctest --filter MatrixTests/struckTwice

# So many random gestures of people and editors, while three workers work.
GESTURES ?= 100000
GESTURES_SEED ?= 1
gestures: setup all
	python3 -B Torture/endure/gestures.py --program $(PROGRAM) --gestures $(GESTURES) --seed $(GESTURES_SEED)

# Servers and proxies as the distribution ships them. REALSERVERS="--servers 'apache,caddy h2'" tries these alone.
REALSERVERS ?=
realservers: setup all
	Torture/realservers/setup
	python3 -B Torture/realservers --program $(PROGRAM) $(REALSERVERS)

# One worker for MINUTES, while jobs, server and network change at random. Needs root, for a network of its own; without it says so and
# does nothing. SOAK="--seed 7" for another order; SOAK="--plant memory" for a worker that leaks, which has to be found.
MINUTES ?= 60
SOAK ?=
soak: setup all
	python3 -B Torture/endure/soak.py --program $(PROGRAM) --minutes $(MINUTES) $(SOAK)

# Each of these mistakes in turn, a minute each.
soak-self-test: setup all
	python3 -B Torture/endure/soak.py --program $(PROGRAM) --self-test

# Some of it, in two minutes.
torture-quick:
	$(MAKE) crowd CROWD='--jobs 400'
	$(MAKE) soak MINUTES=1

# Power cuts on real file systems. Needs root and loop devices; without them it says so and does nothing. CUTS=3000 for more. Most of it is waiting,
# so the kinds of disk go well side by side: make -j5 -Otarget.
CUTS ?= 100
POWERCUT_KINDS = ext4 ext4-writeback xfs btrfs full-disks
powercut: $(POWERCUT_KINDS:%=powercut-%) powercut-self-test

$(POWERCUT_KINDS:%=powercut-%): powercut-%: powercut-setup
	python3 -B Torture/powercut --program $(PROGRAM) --kinds $* --cuts $(CUTS)

powercut-self-test: powercut-setup
	python3 -B Torture/powercut --program $(PROGRAM) --self-test --kinds xfs,ext4 --cuts 15 --interval 0.8

powercut-setup: setup all
	Torture/powercut/setup

# The same by killing a kernel that is a process, User-Mode Linux, about six a minute for each file system.
powercut-uml: CUTS = 20
powercut-uml: setup all
	Torture/powercut/setup user-mode-linux
	python3 -B Torture/powercut --program $(PROGRAM) --uml --self-test --kinds ext4 --cuts 8
	python3 -B Torture/powercut --program $(PROGRAM) --uml --cuts $(CUTS)

# ROWS="small medium" measures these alone, QUICK=1 with smaller sizes; then nothing but the screen gets the figures.
bench: setup all
	Benchmarks/setup
	python3 -B Benchmarks --program $(PROGRAM) --rows '$(ROWS)' $(if $(QUICK),--quick)

bench-growth:
	$(MAKE) bench ROWS=growth

# What scripts/setup says of its groups.
setup: setup-test

setup-build setup-demo setup-test: setup-%:
	scripts/setup $*

# Builds only what isn't there, so that root, who may have no Swift, installs what a user has built.
install:
	test -x $(PROGRAM) || $(MAKE) all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/man/man1' '$(DESTDIR)$(PREFIX)/share/man/man5' \
	  '$(DESTDIR)$(PREFIX)/share/man/man7'
	install -m 755 $(PROGRAM) '$(DESTDIR)$(PREFIX)/bin/spoolrun'
	install -m 644 man/spoolrun.1 '$(DESTDIR)$(PREFIX)/share/man/man1/spoolrun.1'
	install -m 644 man/spool.5 '$(DESTDIR)$(PREFIX)/share/man/man5/spool.5'
	install -m 644 man/spoolrun-log.7 '$(DESTDIR)$(PREFIX)/share/man/man7/spoolrun-log.7'
	for file in $(COMPLETIONS); do \
	  install -d "$(DESTDIR)$(PREFIX)/share/$${file%/*}" && \
	  $(PROGRAM) --generate-completion-script "$${file%%[-/]*}" >"$(DESTDIR)$(PREFIX)/share/$$file" && \
	  chmod 644 "$(DESTDIR)$(PREFIX)/share/$$file" || exit 1; \
	done

uninstall:
	rm -f '$(DESTDIR)$(PREFIX)/bin/spoolrun'
	rm -f '$(DESTDIR)$(PREFIX)/share/man/man1/spoolrun.1' '$(DESTDIR)$(PREFIX)/share/man/man5/spool.5' \
	  '$(DESTDIR)$(PREFIX)/share/man/man7/spoolrun-log.7'
	rm -f $(foreach file,$(COMPLETIONS),'$(DESTDIR)$(PREFIX)/share/$(file)')

clean:
	$(SWIFT) package clean

.PHONY: all demo picture check test build-tests lint format model fuzz sanitize torture torture-quick crowd crowd-apart frames random random-self-test pairs soak soak-self-test peers \
  gestures realservers powercut powercut-setup powercut-self-test \
  $(POWERCUT_KINDS:%=powercut-%) powercut-uml bench bench-growth crash-rig setup setup-build setup-demo setup-test \
  install uninstall clean
