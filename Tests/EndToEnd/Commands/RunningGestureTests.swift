import Glibc
import TestSupport
import Testing

/// Gestures on jobs that a worker has in its hands: by command, and by the `mv` and `rm` that the command stands for.
@Suite struct RunningGestureTests {
  private let scene: Scene

  init() throws { scene = try Scene() }

  /// Within a second, and more where others have the processor. A heartbeat comes after 30 s, a pass over the spool
  /// after 60, and the silence of the server ends nothing before an hour is over.
  private static let soon = Duration.seconds(25)

  @Test(.timeLimit(.minutes(30)), arguments: ["$spoolrun hold big", "mv cur/big:* hold/big"])
  func `hold stops a transfer within a second; released, it goes on`(gesture: String) async throws {
    let result = try await scene.withWorker { _ in
      try scene.spool.drop("big", "url: \(scene.server.url("/slow"))\noutput: o\n\(patient)")
      try await scene.waitForHalf("big")
      try await scene.shell(gesture).exits(0)
      // The worker's last line tells that it has let go.
      try await waitUntil("the worker lets go", timeout: Self.soon) {
        try scene.spool.lines("hold/big").last?.key == "interrupted"
      }
      #expect(scene.spool.places(of: "big") == ["hold/big"])
      #expect(scene.length("big") == payload.count / 2)
      try await scene.spoolrun("release", "big").exits(0)
      try await waitUntil("done") { scene.exists("done/big") }
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(try scene.spool.payload("o") == payload)
    #expect(
      scene.server.requests.map { $0.value("Range") } == [nil, "bytes=\(resumePoint(after: payload.count / 2))-"])
  }

  @Test(.timeLimit(.minutes(30)), arguments: ["$spoolrun cancel big", "rm cur/big:*"])
  func `cancel stops a transfer within a second; its data goes`(gesture: String) async throws {
    let result = try await scene.withWorker { _ in
      try scene.spool.drop("big", "\(scene.server.url("/slow"))\n\(patient)")
      try await scene.waitForHalf("big")
      try await scene.shell(gesture).exits(0)
      try await waitUntil("the data is gone", timeout: Self.soon) { scene.length("big") == nil }
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(result.errors.contains("cancelled job=big"), "\(result)")
    #expect(scene.spool.places(of: "big") == [] && scene.spool.payloads == [])
  }

  @Test(.timeLimit(.minutes(30)))
  func `a job dropped by the name of one that was just removed runs when that one has ended`() async throws {
    let result = try await scene.withWorker("--rescan", "1h") { _ in
      try scene.spool.drop("big", "url: \(scene.server.url("/slow"))\noutput: first\n")
      try await scene.waitForHalf("big")
      try await scene.shell("rm cur/big:*").exits(0)
      try scene.spool.drop("big", "url: \(scene.server.url("/fast"))\noutput: second\n")
      try await waitUntil("done") { scene.isDone("big") }
    }
    #expect(result.status == .exited(0) && result.errors.contains("cancelled job=big"), "\(result)")
    #expect(scene.spool.payloads == ["second"] && scene.spool.places(of: "big") == ["done/big"])
    #expect(scene.length("big") == nil)
  }

  @Test(.timeLimit(.minutes(30)), arguments: [("\"1\"", ""), (nil, "crc32: \(hex8(independentCRC32(payload)))\n")])
  func `a held job with another URL goes on if a checksum proves it`(etag: String?, checksum: String) async throws {
    let scene = try Scene(etag: etag)
    try scene.spool.drop("big", "url: \(scene.server.url("/slow?expires=1"))\noutput: o\n\(checksum)")
    let result = try await scene.withWorker { _ in
      try await scene.waitForHalf("big")
      try await scene.spoolrun("hold", "big")
      try await waitUntil("the worker lets go") { try scene.spool.lines("hold/big").last?.key == "interrupted" }
      // As an editor does that saves by rename.
      try await scene.shell("sed -i 's/slow?expires=1/fast?expires=2/' hold/big").exits(0)
      try await scene.spoolrun("release", "big")
      try await waitUntil("done") { scene.exists("done/big") }
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(try scene.spool.payload("o") == payload)
    let asked = scene.server.requests.filter { $0.target == "/fast?expires=2" }
    #expect(asked.first?.value("Range") == "bytes=\(resumePoint(after: payload.count / 2))-")
    #expect(asked.first?.value("If-Range") == etag)
    // Another path is another resource, whatever its ETag (RFC 9110 section 8.8.1).
    #expect(asked.dropFirst().map { $0.value("Range") } == (checksum.isEmpty ? [nil] : []))
  }

  @Test(.timeLimit(.minutes(30)))
  func `no job is lost or run twice while all are held and released`() async throws {
    let names = (1...80).map { "job\($0)" }
    let result = try await scene.withWorker { _ in
      for name in names { try scene.spool.drop(name, "url: \(scene.server.url("/fast"))\noutput: \(name)\n") }
      for _ in 1...6 {
        for gesture in ["hold", "release"] {
          try await scene.spoolrun(gesture, "--all").exits(0)
        }
      }
      try await waitUntil("all are done") { scene.spool.names("done").count == names.count }
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(!result.errors.contains(" broken ") && !result.errors.contains(" failed "), "\(result)")
    #expect(Set(scene.spool.names("done")) == Set(names))
    for name in names { #expect(try scene.spool.payload(name) == payload) }
    #expect(scene.spool.names("partial") == [] && scene.spool.names("failed") == [])
  }

  @Test(.timeLimit(.minutes(30)))
  func `whatever is cancelled meanwhile leaves no data`() async throws {
    let result = try await scene.withWorker { worker in
      for round in 1...6 {
        for number in 1...20 {
          try scene.spool.drop("job\(number)", "url: \(scene.server.url("/fast"))\noutput: \(round)/\(number)\n")
        }
        try await scene.spoolrun("cancel", "--all").exits(0)
      }
      try await waitUntil("the worker lets go") { scene.spool.names("cur") == [] && scene.spool.names("partial") == [] }
      #expect(!worker.isFinished)
    }
    #expect(result.status == .exited(0), "\(result)")
    #expect(!result.errors.contains(" broken "), "\(result)")
    for state in ["new", "cur", "partial", "hold", "failed"] { #expect(scene.spool.names(state) == []) }
    for output in scene.spool.payloads { #expect(try scene.spool.payload(output) == payload) }
  }
}
