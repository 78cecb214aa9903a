PREFIX ?= /usr/local
DESTDIR ?=
SWIFT ?= swift

# lld is used because GNU gold warns of a function in the runtime's archive that we do not call.
RELEASE_BUILD ?= .build
OPTIMIZED = -c release --disable-local-rpath -Xswiftc -use-ld=lld -Xlinker -s -Xlinker --icf=safe \
  -Xlinker --no-export-dynamic
RELEASE = --scratch-path $(RELEASE_BUILD) $(OPTIMIZED)
PROGRAM = $(RELEASE_BUILD)/release/spoolrun
# Reads the lists of standing orders. The worker looks for it beside itself.
ENTRIES = $(RELEASE_BUILD)/release/spoolrun-entries
# mandoc says this of manuals that are not installed on this machine.
UNINSTALLED = 'STYLE: referenced manual not found'
SCRIPTS = .ci/run Benchmarks/setup Tests/Torture/hosts/setup Tests/Torture/powercut/setup \
  Tests/Torture/realservers/setup scripts/demo \
  scripts/deb scripts/fuzz scripts/loopback scripts/sanitize scripts/setup scripts/tarball scripts/version \
  contrib/spoolrun-inotify contrib/lists/ena contrib/hooks/resolve contrib/hooks/deliver \
  contrib/hooks/failed-mail contrib/hooks/notify-ntfy contrib/hooks/healthchecks \
  contrib/slurm/spoolrun.sbatch scripts/check-contrib Tests/Models/check debian/postinst debian/postrm debian/prerm
PYTHON = Benchmarks Tests/Torture scripts/cpu.py scripts/nginx.py scripts/picture contrib/unarchive contrib/lists/zenodo \
  contrib/lists/pooch contrib/lists/huggingface contrib/hooks/resolve-s3 contrib/hooks/resolve-oauth contrib/hooks/resolve-huggingface \
  contrib/aria2-rpc contrib/aria2-rpc/aria2-rpc contrib/spoolrun-team Tests/Contrib

# What `make install` puts below PREFIX, besides the programs. Distributions have other directories for some of it.
MANUALS = man1/spoolrun.1 man5/spool.5 man7/spoolrun-log.7 man7/spoolrun-howto.7
ZSH_COMPLETIONS ?= zsh/site-functions
COMPLETIONS = bash-completion/completions/spoolrun $(ZSH_COMPLETIONS)/_spoolrun \
  fish/vendor_completions.d/spoolrun.fish
UNITS ?= $(PREFIX)/lib/systemd/system
SUBSCRIPTIONS = $(notdir $(wildcard contrib/subscriptions/*))
UNIT_FILES = $(notdir $(wildcard contrib/systemd/spoolrun*))
INSTALLED = $(PREFIX)/bin/spoolrun $(PREFIX)/bin/spoolrun-entries $(MANUALS:%=$(PREFIX)/share/man/%) \
  $(COMPLETIONS:%=$(PREFIX)/share/%) $(UNIT_FILES:%=$(UNITS)/%) $(PREFIX)/lib/systemd/user/spoolrun.service \
  $(PREFIX)/lib/sysusers.d/spoolrun.conf $(PREFIX)/lib/tmpfiles.d/spoolrun.conf \
  $(SUBSCRIPTIONS:%=$(PREFIX)/share/spoolrun/subscriptions/%)

# More options of `swift build`.
BUILD_FLAGS ?=

all:
	@command -v $(firstword $(SWIFT)) >/dev/null || { echo 'make: no Swift toolchain ($(SWIFT)) to build $(PROGRAM):' \
	  'run make as a user who has Swift 6.2 or later (https://www.swift.org/install),' \
	  'or name it: make SWIFT=/PATH/TO/swift' >&2; exit 1; }
	$(SWIFT) build $(BUILD_FLAGS) $(RELEASE) --product spoolrun
	$(SWIFT) build $(BUILD_FLAGS) $(RELEASE) --product spoolrun-entries

demo: setup-demo all
	scripts/demo $(PROGRAM)

# The picture of the README: records a session in a terminal, in half a minute.
picture: all
	scripts/setup tmux
	scripts/picture $(PROGRAM) >docs/terminal.svg.new
	mv docs/terminal.svg.new docs/terminal.svg

# The number of tests that run at the same time. By default swift-testing starts all tests at once, and on few cores
# each of them waits for minutes.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 16

# To be run after each change: all tests except the slowest (Tests/README.md), and lint. It takes less than a minute
# after the build.
UNCHECKED = CrashMatrixTests LyingServerTests CronTests DropToolTests LongBacklogTests SeveralUsersTests
check: setup build-tests
	$(SWIFT) test --skip-build --disable-xctest $(UNCHECKED:%=--skip %)
	$(MAKE) -o setup lint

# Tests the optimised program: it is as people run it but for what -enable-testing keeps, and takes less time. The tests
# start a program some twenty thousand times. One build has program and tests, without debug information.
TESTED_BUILD ?= .build-tested
TESTED = --scratch-path $(TESTED_BUILD) $(OPTIMIZED) -Xswiftc -enable-testing -Xswiftc -gnone
RUN_TESTED = $(TESTED_BUILD)/release/spoolrunPackageTests.xctest --testing-library swift-testing
test: setup build-tested
	$(RUN_TESTED)
	$(MAKE) -o all RELEASE_BUILD=$(TESTED_BUILD) test-contrib

# The programs of contrib that tests in Swift do not run.
test-contrib: all
	SPOOLRUN=$(PROGRAM) python3 -B Tests/Contrib/aria2_rpc.py
	SPOOLRUN=$(PROGRAM) python3 -B Tests/Contrib/team.py
	SPOOLRUN=$(PROGRAM) python3 -B Tests/Contrib/confined.py
	python3 -B Tests/Contrib/unarchive.py
	python3 -B Tests/Contrib/others.py

# File systems differ in what moves, locks and flags do: /tmp is on a disk here, and a tmpfs there. Those tests that can
# notice it, on a tmpfs. The crash tests are on one in any case.
NOTICING = BarredTests ClaimingTests ClaimTests TakeOverTests FreshInodeTests EditTests RelinkTests GestureTests \
  InterruptedCommitTests EditedJobTests DeliverTests
test-tmpfs: setup build-tested
	TMPDIR=/dev/shm $(RUN_TESTED) $(NOTICING:%=--filter %)

build-tests:
	$(SWIFT) build --build-tests

build-tested:
	SPOOLRUN_TESTS=all $(SWIFT) build $(BUILD_FLAGS) $(TESTED) --build-tests
	for product in spoolrun spoolrun-entries FaultRig; do \
	  $(SWIFT) build $(BUILD_FLAGS) $(TESTED) --product $$product || exit 1; \
	done

lint: setup
	$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests
	! mandoc -Tlint $(addprefix man/,$(notdir $(MANUALS))) 2>/dev/null | grep -v $(UNINSTALLED)
	shellcheck $(SCRIPTS)
	pyflakes3 $(PYTHON)
	python3 -B Tests/Torture/simulation --check

format:
	$(SWIFT) format --in-place --recursive --parallel Package.swift Sources Tests

# Checks the files for Kubernetes and Slurm, as far as there are tools for that.
check-contrib:
	scripts/check-contrib

# Checks all states of each configuration of the models. MODEL=bounded leaves out the largest, or replaces them
# by smaller ones.
MODEL ?= whole
model: setup
	Tests/Models/check $(MODEL)

# Runs libFuzzer on each reader of bytes from outside, for SECONDS of CPU each.
SECONDS ?= 60
fuzz: setup
	scripts/fuzz $(SECONDS)

# Runs the tests under ThreadSanitizer and AddressSanitizer, and the worker under valgrind.
sanitize: setup
	scripts/sanitize

# Runs all rigs, which takes five hours or more, and prints a table. PARTS="crowd pairs" runs only these.
PARTS ?=
torture:
	python3 -B Tests/Torture/torture.py $(PARTS)

# Runs other tools against the lying servers of the tests, and writes Tests/Torture/PEERS.md. README has a copy of its
# table.
peers: setup all
	Benchmarks/setup
	$(SWIFT) build --product LyingServer
	PATH="$$(Benchmarks/newest):$$PATH" python3 -B Tests/Torture/peers --program $(PROGRAM) --server .build/debug/LyingServer

# Kills, stops and replaces workers at random. CROWD="--jobs 10000 --seed 7" sets the number of jobs and the order.
CROWD ?= --jobs 10000
crowd: setup all
	python3 -B Tests/Torture/endure/crowd.py --program $(PROGRAM) $(CROWD)

# The same on two hosts that do not see each other's locks, as on some network file systems: each has a FUSE mount of
# the spool. It needs root and /dev/fuse; without them it says so and does nothing.
CROWD_APART ?= --jobs 2000 --locks apart
crowd-apart: setup all
	scripts/setup bindfs
	python3 -B Tests/Torture/endure/crowd.py --program $(PROGRAM) $(CROWD_APART)

# Lets three hosts share a spool on each of several network file systems, and cuts one off, kills its mount or its
# worker. It needs root, for namespaces, and /dev/fuse; without them it says so and does nothing.
# HOSTS="--systems moosefs --parts speed,cut" plays less; Tests/Torture/HOSTS.md is written only by
# `make hosts-table`.
HOSTS ?=
hosts: setup all
	Tests/Torture/hosts/setup
	python3 -B Tests/Torture/hosts --program $(PROGRAM) $(HOSTS)

# A minute, most of it waiting.
hosts-quick: setup all
	Tests/Torture/hosts/setup bindfs moosefs
	python3 -B Tests/Torture/hosts --program $(PROGRAM) --systems bindfs,moosefs --parts doctor,speed,cut --hosts 3 \
	  --lease 10

hosts-table:
	$(MAKE) hosts HOSTS='--table Tests/Torture/HOSTS.md $(HOSTS)'

# Runs jobs against a server that answers at random; a seed draws each trial. A trial that fails is reduced and printed.
# `Tests/Torture/random --trial N` runs one trial.
TRIALS ?= 2000
SEED ?= 1
random: setup all
	python3 -B Tests/Torture/random --program $(PROGRAM) --trials $(TRIALS) --seed $(SEED)

# The same with known mistakes in the program. Each has to be found.
random-self-test: setup all
	python3 -B Tests/Torture/random --self-test

# Plays seeds in the simulated world (docs/TESTING.md); SIMULATE=N plays one and tells its story. Not beside
# `make test`: each links the programs anew.
SIMULATE ?= $(shell date +%s)000000-99999999999999999
SIMULATE_SECONDS ?= 600
simulate: setup build-tested
	SIMULATE=$(SIMULATE) SIMULATE_SECONDS=$(SIMULATE_SECONDS) timeout --foreground -k 10 \
	  $$(($(SIMULATE_SECONDS) * 2 + 600)) $(RUN_TESTED) --filter 'SimulationTests.*(no.claim|whole)'

# New seeds, with optimised code, one process for each core.
HOURS ?= 5
simulate-night: setup
	python3 -B Tests/Torture/simulation --night $(HOURS)

# Lists the lines of the program's decisions that SIMULATE_SECONDS of seeds do not reach.
simulate-coverage: setup
	python3 -B Tests/Torture/simulation --coverage $(SIMULATE_SECONDS)

# The same with known mistakes in the program. Each has to be found. MISTAKES="'tail' 'reboot'" tries only these.
MISTAKES ?=
simulate-self-test: setup
	python3 -B Tests/Torture/simulation $(MISTAKES)

# Kills the worker at each call, and fails each call, in each scenario. `make test` has an eighth of them a day.
matrix: setup build-tested
	CRASH_MATRIX=all $(RUN_TESTED) --filter MatrixTests

# Makes two faults, one after the other; a seed draws each pair. CRASH_PAIR=77 in addition runs only that pair.
CRASH_PAIRS ?= 10000
CRASH_SEED ?= 1
pairs: setup build-tested
	CRASH_PAIRS=$(CRASH_PAIRS) CRASH_SEED=$(CRASH_SEED) $(RUN_TESTED) --filter MatrixTests/struckTwice

# Makes this number of random changes, as people and editors make them, while three workers work.
GESTURES ?= 100000
GESTURES_SEED ?= 1
gestures: setup all
	python3 -B Tests/Torture/endure/gestures.py --program $(PROGRAM) --gestures $(GESTURES) --seed $(GESTURES_SEED)

# Downloads from servers and through proxies of the distribution. REALSERVERS="--servers 'apache,caddy tls'" tries only
# these.
REALSERVERS ?=
realservers: setup all
	Tests/Torture/realservers/setup
	python3 -B Tests/Torture/realservers --program $(PROGRAM) $(REALSERVERS)

# Runs one worker for MINUTES, while jobs, server and network change at random. It needs root, for a network namespace;
# without it it says so and does nothing. SOAK="--seed 7" sets the order. SOAK="--plant memory" makes the worker leak,
# which has to be found.
MINUTES ?= 60
SOAK ?=
soak: setup all
	python3 -B Tests/Torture/endure/soak.py --program $(PROGRAM) --minutes $(MINUTES) $(SOAK)

# Makes each of these mistakes in turn, for a minute each.
soak-self-test: setup all
	python3 -B Tests/Torture/endure/soak.py --program $(PROGRAM) --self-test

# Crowd and soak for two minutes.
torture-quick:
	$(MAKE) crowd CROWD='--jobs 400'
	$(MAKE) soak MINUTES=1

# Cuts the power to real file systems. It needs root and loop devices; without them it says so and does nothing.
# CUTS=3000 makes more cuts. The kinds of disk mostly wait, so they can run side by side: make -j5 -Otarget powercut.
CUTS ?= 100
POWERCUT_KINDS = ext4 ext4-writeback xfs btrfs full-disks
powercut: powercut-kinds powercut-self-test

powercut-kinds: $(POWERCUT_KINDS:%=powercut-%)

$(POWERCUT_KINDS:%=powercut-%): powercut-%: powercut-setup
	python3 -B Tests/Torture/powercut --program $(PROGRAM) --kinds $* --cuts $(CUTS)

powercut-self-test: powercut-setup
	python3 -B Tests/Torture/powercut --program $(PROGRAM) --self-test --kinds xfs,ext4 --cuts 15 --interval 0.8

powercut-setup: setup all
	Tests/Torture/powercut/setup

# The same with User-Mode Linux, a kernel that is a process and can be killed: about six times a minute for each file
# system.
powercut-uml: CUTS = 20
powercut-uml: setup all
	Tests/Torture/powercut/setup user-mode-linux
	python3 -B Tests/Torture/powercut --program $(PROGRAM) --uml --self-test --kinds ext4 --cuts 8
	python3 -B Tests/Torture/powercut --program $(PROGRAM) --uml --cuts $(CUTS)

# ROWS="small medium" measures only these rows, QUICK=1 uses smaller sizes. With either, the figures are only printed,
# not written to RESULTS.md; UPDATE=Benchmarks/RESULTS.md puts these rows into it. It measures on a file system in an
# image: FS=xfs or FS=btrfs instead of ext4, which has a journal; FS=none measures on the disk as it is, and needs no
# root.
FS ?= ext4
bench: setup all
	Benchmarks/setup
	PATH="$$(Benchmarks/newest):$$PATH" python3 -B Benchmarks --program $(PROGRAM) --fs $(FS) --rows '$(ROWS)' $(if $(QUICK),--quick) \
	  $(if $(UPDATE),--update $(UPDATE))

bench-growth:
	$(MAKE) bench ROWS=growth

# Beside servers that set limits or are away, for five minutes. Writes Benchmarks/SERVERS.md.
bench-servers:
	$(MAKE) bench ROWS=servers

# The groups are explained in scripts/setup.
setup: setup-test

setup-build setup-demo setup-test setup-package: setup-%:
	scripts/setup $*

# Builds the program only if it is missing, because root may have no Swift toolchain and installs what a user has built.
# Nothing is enabled: contrib/README.md says how.
AT = $(DESTDIR)$(PREFIX)
install:
	@{ test -x $(PROGRAM) && test -x $(ENTRIES); } || $(MAKE) --no-print-directory all
	for file in $(INSTALLED); do install -d "$(DESTDIR)$${file%/*}" || exit 1; done
	install -m 755 $(PROGRAM) $(ENTRIES) '$(AT)/bin'
	for file in $(MANUALS); do install -m 644 "man/$${file#*/}" "$(AT)/share/man/$$file" || exit 1; done
	for file in $(COMPLETIONS); do \
	  $(PROGRAM) --generate-completion-script "$${file%%[-/]*}" >"$(AT)/share/$$file" && \
	  chmod 644 "$(AT)/share/$$file" || exit 1; \
	done
	install -m 644 $(UNIT_FILES:%=contrib/systemd/%) '$(DESTDIR)$(UNITS)'
	install -m 644 contrib/systemd/user/spoolrun.service '$(AT)/lib/systemd/user'
	sed -i 's,/usr/local/bin/,$(PREFIX)/bin/,' $(UNIT_FILES:%='$(DESTDIR)$(UNITS)/%') \
	  '$(AT)/lib/systemd/user/spoolrun.service' $(MANUALS:%='$(AT)/share/man/%')
	install -m 644 $(SUBSCRIPTIONS:%=contrib/subscriptions/%) '$(AT)/share/spoolrun/subscriptions'
	install -m 644 contrib/sysusers.d/spoolrun.conf '$(AT)/lib/sysusers.d'
	install -m 644 contrib/tmpfiles.d/spoolrun.conf '$(AT)/lib/tmpfiles.d'

# In a package, README and others have other neighbours than here. A link to what is not there becomes its text.
doc-links:
	sed -zEi -e 's,\]\((\.\./)?docs/(GUIDE|SECURITY)\.md,](\2.md,g' -e 's,\]\((\.\./)*contrib/,](examples/,g' \
	  -e 's,!?\[([^][]*)\]\((\.\./|man/|docs/|Tests/|Benchmarks/|CONTRIBUTING)[^()]*\),\1,g' \
	  $(DOCS)/*.md $(DOCS)/examples/README.md

uninstall:
	rm -f $(INSTALLED:%='$(DESTDIR)%')

# The Debian package, checked by lintian, and an archive for other systems:
# `tar -C /usr/local --strip-components=1 -xf FILE`.
PACKAGES = $(RELEASE_BUILD)/packages
deb: setup-package all
	rm -f $(PACKAGES)/*.deb
	scripts/deb $(RELEASE_BUILD) $(PACKAGES)
	lintian --fail-on error,warning $(PACKAGES)/*.deb

# Installs, upgrades and removes the package in fresh roots of Debian 12 and 13. It needs root and a mirror of Debian;
# without them it says so and does nothing. DEBIANS="--suites bookworm --no-first" leaves out Debian 13, and the upgrade
# from 0.1, which is built the first time.
DEBIANS ?=
deb-test: setup-package all
	scripts/setup mmdebstrap systemd-container
	python3 -B Tests/Torture/packages --build $(RELEASE_BUILD) $(DEBIANS)

tarball: all
	rm -f $(PACKAGES)/*.tar.gz
	scripts/tarball $(RELEASE_BUILD) $(PACKAGES)

clean:
	$(SWIFT) package clean
	rm -rf $(TESTED_BUILD)

.PHONY: all demo picture check check-contrib test test-contrib test-tmpfs build-tests build-tested lint format model fuzz sanitize torture torture-quick \
  crowd crowd-apart hosts hosts-quick hosts-table random random-self-test \
  simulate simulate-coverage simulate-night simulate-self-test \
  matrix pairs soak soak-self-test peers \
  gestures realservers powercut powercut-kinds powercut-setup powercut-self-test $(POWERCUT_KINDS:%=powercut-%) powercut-uml \
  bench bench-growth bench-servers setup setup-build setup-demo setup-test setup-package install doc-links uninstall \
  deb deb-test tarball clean
