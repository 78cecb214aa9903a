import Glibc
import TestSupport
import Testing

/// The file system of the spool goes away for a while: bindfs is killed, and mounted again at the same place.
@Suite struct LostMountTests {
  /// With the spool and the place to show it at as `$0` and `$1`.
  private let serve = #"""
    bindfs -f "$0" "$1" >/dev/null 2>&1 & echo $! >"$0/served"; until test -e "$1/new"; do sleep 0.1; done
    """#

  /// A worker in a mount namespace of its own, in which `mount` shows the spool.
  /// - Parameter log: a file for what it says; nil for standard error.
  private func start(
    _ arguments: [String], _ spool: TemporarySpool, at mount: String, log: String? = nil
  ) throws -> RunningCommand {
    try startSpoolrun(
      arguments + [mount], environment: ["LOG": log ?? ""],
      prefix: [
        "/usr/bin/unshare", "--mount", "/bin/bash", "-euc",
        serve + #"; shift; if [ "$LOG" ]; then exec 2>"$LOG"; fi; exec "$@""#, spool.root, mount,
      ])
  }

  private func killServer(of spool: TemporarySpool) throws {
    let text = try spool.text("served")
    kill(try #require(pid_t(text.split(separator: "\n").first ?? "")), SIGKILL)
  }

  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func aWorkerWaitsForIt() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let (spool, place, notes) = (try TemporarySpool(), try TemporaryDirectory(), try TemporaryDirectory())
    defer { withExtendedLifetime(notes) {} }
    let log = "\(notes.path)/log"
    for name in ["a", "b"] { try spool.drop(name, "\(server.url("/\(name)"))\n\(patient)# complete\n") }
    let worker = try start(["--lease", "5s"], spool, at: place.path, log: log)
    defer { worker.send(signal: SIGKILL) }
    for name in ["a", "b"] {
      try await waitForHalf(of: name, in: spool)
    }
    try killServer(of: spool)
    // The jobs end, and so the connections.
    gate.open()
    // Mounted before that, it would not have been missed by a worker that stood still.
    try await waitUntil("the worker misses it") {
      try readText(log).contains("spool-missing: ")
    }
    let mounted = try await run([
      "/usr/bin/nsenter", "--target", "\(worker.processID)", "--mount", "/bin/sh", "-euc",
      #"umount -l "$1"; "# + serve, spool.root, place.path,
    ])
    #expect(mounted.status == .exited(0), "\(mounted)")
    defer { try? killServer(of: spool) }
    try await waitUntil("they are done") { spool.places(of: "a") == ["done/a"] && spool.places(of: "b") == ["done/b"] }
    try await worker.stop().exits(0)
    let text = try readText(log)
    let events = text.split(separator: "\n").compactMap { $0.split(separator: " ").dropFirst().first }
    #expect(events == ["spool-missing:", "spool-replaced:"], "\(text)")
    #expect(try spool.payload("a") == halfwayBody && spool.payload("b") == halfwayBody)
  }

  @Test(.enabled("needs bindfs") { try await Need.bindfs.isMet() })
  func onceEndsAsForAJobThatWaits() async throws {
    let gate = try Gate()
    let server = try halfwayServer(halfwayBody, gate: gate)
    let (spool, place) = (try TemporarySpool(), try TemporaryDirectory())
    try spool.drop("a", "\(server.url("/a"))\n\(patient)# complete\n")
    let worker = try start(["--once"], spool, at: place.path)
    defer { worker.send(signal: SIGKILL) }
    try await waitForHalf(in: spool)
    try killServer(of: spool)
    let result = try await worker.result().exits(75)
    // The output root is in the same mount, and may be missed first.
    let problems = result.errors.split(separator: "\n").filter { !$0.contains(" output-missing: ") }
    #expect(problems.count == 1, "\(result)")
    #expect(spool.places(of: "a").first?.hasPrefix("cur/a:") == true)
  }
}
