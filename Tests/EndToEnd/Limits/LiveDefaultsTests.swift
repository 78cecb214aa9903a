import Glibc
import TestSupport
import Testing

/// `defaults` that change while a worker runs.
@Suite struct LiveDefaultsTests {
  private let scene: Scene
  private let log: String

  init() throws {
    scene = try Scene()
    log = "\(scene.tools)/log"
  }

  private func write(_ text: String) throws {
    try scene.spool.write("tmp/defaults", text)
    try scene.spool.move("tmp/defaults", "defaults")
  }

  private var logged: String { get throws { try readText(log) } }

  /// Waits until the worker has logged `text` so many times.
  private func waitForLog(_ text: String, count: Int = 1) async throws {
    try await waitUntil("the log says \(text)") {
      try readText(log).split(separator: text).count > count
    }
  }

  /// Runs `body` beside a worker that watches and writes its log into a file.
  private func withWorker(_ body: () async throws -> Void) async throws {
    let line = "exec \(scene.tools)/spoolrun -v \(scene.spool.root) 2>\(log)"
    let worker = try RunningCommand(["/bin/sh", "-c", line])
    do { try await body() } catch {
      worker.send(signal: SIGKILL)
      throw error
    }
    try await worker.stop()
  }

  /// 1 MiB at 2k a second would take nine minutes. Without the limit it takes an instant.
  @Test(arguments: [nil, "limit-rate: none\n", "limit-rate: none 00:00-24:00, 1k\n"] as [String?])
  func aRunningTransferFollowsItsRate(text: String?) async throws {
    try write("limit-rate: 2k 00:00-24:00, none\n")
    try await withWorker {
      try scene.spool.drop("a", scene.server.url("/a") + "\n")
      try await waitUntil("it has begun") { (scene.length("a") ?? 0) > 0 }
      // In place, as an editor may do it, or not at all.
      if let text {
        try scene.spool.write("defaults", text)
      } else {
        #expect(unlink(scene.spool.path("defaults")) == 0)
      }
      try await waitUntil("it is done") { scene.isDone("a") }
      #expect(try logged.contains(" defaults-read"))
    }
  }

  /// As that of a laptop that travels.
  @Test(.enabled("needs mounts") { try await Need.mounts.isMet() })
  func theTimeOfDayIsThatOfTheHostsZone() async throws {
    func clock(_ hour: Int) -> String { "\(hour % 24 < 10 ? "0" : "")\(hour % 24):00" }
    let hour = time(nil) / 3600
    try write("limit-rate: 2k \(clock(hour + 22))-\(clock(hour + 3)), none\n")
    let script = """
      unset TZ; mount --bind /usr/share/zoneinfo/Etc/UTC /etc/localtime
      "$0/spoolrun" "$1" & trap "kill $!" TERM
      until [ -e "$0/there" ]; do sleep 0.1; done
      mount --bind /usr/share/zoneinfo/Etc/GMT-12 /etc/localtime
      wait; wait
      """
    let worker = try RunningCommand(
      ["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script, scene.tools, scene.spool.root])
    defer { worker.send(signal: SIGTERM) }
    try scene.spool.drop("a", scene.server.url("/a") + "\n")
    try await waitUntil("it has begun") { (scene.length("a") ?? 0) > 0 }
    try writeFile("\(scene.tools)/there", [])
    try await waitUntil("it is done") { scene.isDone("a") }
    try await worker.stop()
  }

  @Test func aNewLimitHoldsForARunningTransfer() async throws {
    try write("limit-rate: 8k\n")
    try await withWorker {
      try scene.spool.drop("a", scene.server.url("/a") + "\n")
      try await waitUntil("it has begun") { (scene.length("a") ?? 0) > 0 }
      try write("limit-rate: 1k\n")
      try await waitForLog(" defaults-read")
      // A second later at most, it gets a KiB a second, in pieces of a few.
      try await Task.sleep(for: .milliseconds(1500))
      let (length, began) = (try #require(scene.length("a")), ContinuousClock.now)
      try await Task.sleep(for: .seconds(6))
      let grown = try #require(scene.length("a")) - length
      #expect(Double(grown) <= 16384 + (ContinuousClock.now - began) / .seconds(1) * 4096)
      #expect(!scene.isDone("a"))
    }
  }

  /// Wrong ones are reported once, and the old ones stay.
  @Test func wrongOnesAreReported() async throws {
    try write("digests: sha256\n")
    try await withWorker {
      try await scene.waitForWorker()
      try write("digests: sha256\nlimit-rate: fast\n")
      try await waitForLog(" defaults-invalid ")
      try scene.spool.drop("a", scene.server.url("/a") + "\n")
      try await waitUntil("it is done") { scene.isDone("a") }
      try write("limit-rate: 100M\n")
      try await waitForLog(" defaults-read")
    }
    #expect(try logged.split(separator: " defaults-invalid ").count == 2)
    #expect(try logged.contains("line 2: limit-rate: must be"))
    #expect(try scene.spool.lines("done/a").last { $0.key == "verified" }?["sha256"] != nil)
  }

  /// What concerns the network holds for requests that begin later.
  @Test func aProxyAndLoginsCount() async throws {
    let proxy = try ScriptedServer { request, reply in
      if request.value("Authorization") != nil { return try reply.respond("200 OK", body: Array("payload\n".utf8)) }
      try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"h\""], body: [])
    }
    try write("attempts: 2\n")
    try scene.spool.write("logins", "machine h.invalid login al1ce password pa55\n")
    #expect(chmod(scene.spool.path("logins"), 0o600) == 0)
    try await withWorker {
      try scene.spool.drop("a", scene.server.url("/a") + "\n")
      try await waitUntil("it is done") { scene.isDone("a") }
      try write("proxy: \(proxy.url(""))\nnetrc: missing\n")
      try await waitForLog(" defaults-invalid ")
      try write("proxy: \(proxy.url(""))\nnetrc: logins\n")
      try await waitForLog(" defaults-read")
      try scene.spool.drop("b", "http://h.invalid/b\n")
      try await waitUntil("it is done") { scene.isDone("b") }
      // Without it again.
      try write("attempts: 2\n")
      try await waitForLog(" defaults-read", count: 2)
      try scene.spool.drop("c", scene.server.url("/c") + "\n")
      try await waitUntil("it is done") { scene.isDone("c") }
    }
    #expect(scene.server.requests.map(\.target) == ["/a", "/c"])
    #expect(proxy.requests.map(\.target) == ["http://h.invalid/b", "http://h.invalid/b"])
    #expect(proxy.requests.map { $0.value("Authorization") } == [nil, "Basic YWwxY2U6cGE1NQ=="])
    #expect(try !logged.contains("pa55"))
  }

  @Test func aPriorityFromDefaultsCounts() async throws {
    try write("priority: low\n")
    try await withWorker {
      try scene.spool.drop("a", "\(scene.server.url("/slow/a"))\n\(patient)")
      try await scene.waitForHalf("a")
      let status = try await scene.spoolrun("status")
      #expect(status.output.contains("low priority"), "\(status)")
    }
  }
}
