import Glibc
import TestSupport
import Testing

/// What keeps jobs from starting: a gate, and room to leave on the disk.
@Suite struct GateTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func aClosedGateStartsNothing() async throws {
    try spool.drop("a", "\(server.url("/x"))\n")
    let closed = try await spoolrun("--once", "--gate", "test -e \(spool.path("open"))", spool.root)
    #expect(closed.status == .exited(75) && closed.errors == "", "\(closed)")
    #expect(spool.places(of: "a") == ["new/a"] && server.requests.isEmpty)
    try spool.write("open", [])
    try await spoolrun("--once", "--gate", "test -e \(spool.path("open"))", spool.root).exits(0)
    #expect(spool.places(of: "a") == ["done/a"])
  }

  /// Closed would be silence for ever.
  @Test(arguments: [
    (nowhere, "cannot be run"), ("kill -9 $$", "no answer"), ("sh -c 'kill -9 $$'; exit $?", "no answer"),
  ])
  func aGateThatDoesNotAnswerIsTold(command: String, reason: String) async throws {
    try spool.drop("a", "http://127.0.0.1:9/x\n")
    try await spoolrun("--once", "--gate", command, spool.root).exits(75, saying: reason)
    #expect(spool.places(of: "a") == ["new/a"])
  }

  /// It is asked when there is something to start, and again until it opens.
  @Test func aGateThatOpensLetsAWatchingWorkerGoOn() async throws {
    // It has its answer before it is seen to be asked.
    let gate = "test -e \(spool.path("open")); answer=$?; echo >>\(spool.path("asked")); exit $answer"
    let worker = try startSpoolrun(["-v", "--gate", gate, spool.root])
    try spool.drop("a", "\(server.url("/x"))\n")
    try await waitUntil("it has asked") { fileStatus(spool.path("asked")) != nil }
    try spool.write("open", [])
    try await waitUntil("the job is done") { spool.places(of: "a") == ["done/a"] }
    // More often where this test has to wait for the processor.
    #expect(try readFile(spool.path("asked")).count >= 2)
    let result = try await worker.stop()
    #expect(result.status == .exited(0) && result.errors.split(separator: " gate-closed ").count == 2, "\(result)")
  }

  /// An answer holds for some seconds, and not for good.
  @Test func aGateThatClosesIsHeard() async throws {
    let gate = "test ! -e \(spool.path("closed"))"
    let log = spool.path("log")
    let worker = try startSpoolrun(
      ["-v", "--gate", gate, spool.root], prefix: ["/bin/sh", "-c", #"exec "$@" 2>"$0""#, log])
    try spool.drop("first", "\(server.url("/x"))\n")
    try await waitUntil("the job is done") { spool.places(of: "first") == ["done/first"] }
    try spool.write("closed", [])
    let numbers = Counter()
    try await waitUntil("it has asked again, and heard the answer", every: .milliseconds(100)) {
      if try readText(log).contains(" gate-closed ") { return true }
      let number = numbers.next()
      try spool.drop("\(number)", "url: \(server.url("/x"))\noutput: \(number)\n")
      return false
    }
    try spool.drop("last", "url: \(server.url("/x"))\noutput: last\n")
    try await worker.stop().exits(0)
    #expect(spool.places(of: "last") == ["new/last"])
  }

  /// A gate may take its time: gestures and signals are seen meanwhile.
  @Test func aWorkerThatAsksItsGateCanBeStopped() async throws {
    let worker = try startSpoolrun(["--gate", "echo $$ >\(spool.path("gate")); exec sleep 600", spool.root])
    try spool.drop("a", "http://127.0.0.1:9/a\n")
    try await waitUntil("it asks") { (try? readFile(spool.path("gate")))?.last == 0x0A }
    try await worker.stop().exits(0)
    let gate = try #require(pid_t(try spool.text("gate").dropLast()))
    #expect(try isProcessGroupGone(gate), "it has ended with the worker")
  }

  @Test func roomToLeaveIsLeft() async throws {
    try spool.drop("a", "\(server.url("/x"))\n")
    let first = try await spoolrun("--once", "--min-free", "4000T", spool.root)
    #expect(
      first.status == .exited(75) && first.errors.hasPrefix("spoolrun: jobs wait: not enough disk space: "),
      "\(first)")
    let result = try await spoolrun("--once", "--min-free", "4000T", spool.root)
    #expect(result.status == .exited(75) && result.errors == "", "told once: \(result)")
    try await spoolrun("--once", "-v", "--min-free", "4000T", spool.root).exits(75, saying: " disk-short ")
    #expect(spool.places(of: "a") == ["new/a"] && server.requests.isEmpty)
    try await spool.once("--min-free", "1", exits: 0)
  }

  /// In a network of its own, whose only link is down and then comes up: long before the job's next attempt is due.
  @Test(.enabled("needs root and a network namespace") { try await Need.networks.isMet() })
  func aNetworkThatReturnsIsUsedAtOnce() async throws {
    let script = """
      ip link set lo up
      ip link add spool0 type veth peer name spool1
      ip link set spool1 up
      echo http://192.0.2.1:9/a >"$1/tmp/a"; mv "$1/tmp/a" "$1/new/a"
      "$0" -v --log-format json "$1" 2>"$1/log" & worker=$!
      until grep -q '"code":"no-network"' "$1/log"; do sleep 0.05; done
      ip addr add 192.0.2.2/24 dev spool0
      ip link set spool0 up
      until [ "$(grep -c '"event":"started"' "$1/log")" -ge 2 ]; do sleep 0.05; done
      kill -TERM $worker; wait $worker; echo "$?"
      """
    let result = try await runTool(
      [
        "/usr/bin/unshare", "--net", "/usr/bin/timeout", "280", "/bin/sh", "-c", script, try productPath("spoolrun"),
        spool.root,
      ])
    #expect(result.output == "75\n", "\(result)")
    // A third one where the shell stood still.
    #expect(try (2...3).contains(spool.lines("partial/a").filter { $0.key == "started" }.count))
  }

  /// A host of both kinds of addresses, one of them out of reach here, and one that is switched off: their attempts
  /// count, and their mirrors are asked.
  @Test(
    .enabled("needs root, a network and a mount namespace") {
      try await Need.areMet(.networks, .mounts)
    })
  func aHostOutOfReachIsNoMissingNetwork() async throws {
    let script = """
      ip link set lo up
      ip link add spool0 type veth peer name spool1
      ip link set spool1 up
      ip addr add 198.51.100.1/24 dev spool0
      ip link set spool0 up
      ip route add default via 198.51.100.2
      printf '198.51.100.1 both.example\n2001:db8::5 both.example\n' >"$1/hosts"
      mount --bind "$1/hosts" /etc/hosts
      echo http://both.example:9/x >"$1/new/both"
      echo http://198.51.100.77:9/x >"$1/new/off"
      "$0" --once "$1" || true
      ip route del default
      echo http://203.0.113.1:9/x >"$1/new/no-route"
      "$0" --once "$1" || true
      """
    let result = try await runTool([
      "/usr/bin/unshare", "--net", "--mount", "/bin/sh", "-euc", script, try productPath("spoolrun"), spool.root,
    ])
    for (name, code) in [("both", "connect"), ("off", "connect"), ("no-route", "no-network")] {
      #expect(try spool.lastFailure("partial/\(name)")["code"] == code, "\(result)")
    }
  }
}
