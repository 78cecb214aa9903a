import Glibc
import TestSupport
import Testing

/// `--min-free`: jobs wait for room and nothing fails.
@Suite(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
struct DiskSpaceTests {
  private let disk: SmallDisk
  private let spool: TemporarySpool

  init() async throws {
    disk = try await SmallDisk(megabytes: 24)
    spool = try TemporarySpool(in: disk.path)
  }

  private static let body = [UInt8](repeating: 7, count: 6_000_000)

  private func server() throws -> ScriptedServer {
    try ScriptedServer { try $1.respond("200 OK", ["ETag: \"1\""], body: $0.target == "/small" ? [1] : Self.body) }
  }

  private func once() async throws -> CommandResult {
    try await spoolrun("--once", "--min-free", "4M", spool.root)
  }

  /// Said once where nothing else came of a run: then cron mails it once, and not each minute.
  private func expectShortage(_ result: CommandResult, isTold: Bool) {
    #expect(result.status == .exited(75), "\(result)")
    let line =
      "spoolrun: (1 job waits|jobs wait): not enough disk space: ([0-9]+ bytes are needed, )?"
      + "[0-9]+ are free, --min-free keeps 4194304\n"
    #expect(isTold ? (try? Regex(line).wholeMatch(in: result.errors)) != nil : result.errors == "", "\(result)")
  }

  @Test func `a job that is known not to fit waits where it is`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    try spool.drop("a", "url: \(server.url("/a"))\nsize: \(Self.body.count)\n")
    try spool.drop("b", "\(server.url("/small"))\n")
    for run in 1...3 {
      // In the first one, something was done.
      expectShortage(try await once(), isTold: run == 2)
      #expect(spool.places(of: "a") == ["new/a"])
    }
    #expect(server.requests.map(\.target) == ["/small"], "what fits goes on")
    disk.empty()
    try await once().exits(0)
    #expect(try spool.payload("a") == Self.body)
    // Another time it is told anew.
    try disk.fill(megabytes: 12)
    try spool.drop("c", "url: \(server.url("/a"))\noutput: c\nsize: \(Self.body.count)\n")
    for run in 1...2 { expectShortage(try await once(), isTold: run == 1) }
  }

  @Test func `a job whose size the server tells waits from then on, and the server is left alone`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    try spool.drop("a", "\(server.url("/a"))\n")
    for run in 1...3 {
      expectShortage(try await once(), isTold: run == 1)
      #expect(spool.names("partial") == ["a"])
    }
    #expect(server.requests.count == 1)
    #expect(try !spool.lines("partial/a").contains { $0.key == "failed" })
    disk.empty()
    try await once().exits(0)
    #expect(try spool.payload("a") == Self.body)
  }

  /// What fails anyway does not wait for room that it will never need, nor does what is there already.
  @Test func `what needs no room does not wait for it`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    let huge = "size: 999999999999\n"
    let url = "url: \(server.url("/a"))\noutput: x\n"
    try spool.drop("large", url + huge + "max-size: 1M\n")
    try spool.drop("late", url + huge + "expires: 2020-01-01\n")
    try spool.drop("wrong", "url: gopher://x/y\noutput: y\n" + huge)
    try spool.write("files/there", [1])
    let sum = hex8(independentCRC32([1]))
    try spool.drop("there", "url: \(server.url("/a"))\noutput: there\nsize: 999999999999\ncrc32: \(sum)\n")
    try await once().exits(1)
    #expect(spool.names("failed") == ["large", "late", "there", "wrong"] && spool.names("new") == [])
    #expect(try spool.lastFailure("failed/there")["code"] == "output-exists")
  }

  /// It would be claimed and parked without end.
  @Test func `what is to be replaced needs room`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    try spool.write("files/there", [1])
    try spool.drop(
      "a", "url: \(server.url("/a"))\noutput: there\noverwrite: yes\nsize: \(Self.body.count)\ncrc32: 00000000\n")
    let result = try await once()
    #expect(result.status == .exited(75) && spool.places(of: "a") == ["new/a"], "\(result)")
  }

  /// Hold, edit, release: what an answer said was of the old URL.
  @Test func `a size that was of another URL is not waited for`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    try spool.drop("a", "\(server.url("/a"))\n")
    try await once().exits(75)
    try await spoolrun("hold", "--spool", spool.root, "a").exits(0)
    try await runTool(["/bin/sed", "-i", "s,/a$,/small,", spool.path("hold/a")])
    try await spoolrun("release", "--spool", spool.root, "a").exits(0)
    try await once().exits(0)
    #expect(try spool.payload("small") == [1])
  }

  /// However many wait, the next one is looked at.
  @Test func `a thousand that wait do not hide another`() async throws {
    let server = try server()
    for number in 0..<1100 {
      try spool.drop("w\(number)", "url: \(server.url("/a"))\nsize: 9223372036854775807\n")
      try setModificationTime(spool.path("new/w\(number)"), secondsFromNow: -5000)
    }
    try spool.drop("z", "\(server.url("/small"))\n")
    let result = try await once()
    #expect(result.status == .exited(75) && result.errors == "", "\(result)")
    #expect(spool.places(of: "z") == ["done/z"] && spool.names("new").count == 1100)
  }

  /// A tmpfs keeps any time that it is given, and strangers choose that of what they drop.
  @Test func `a time at the end of all times stops nobody`() async throws {
    let server = try server()
    for (name, second) in [("late", Int.max), ("early", Int.min), ("plain", 1)] {
      try spool.drop(name, "url: \(server.url("/small"))\noutput: \(name)\n")
      var times = [timespec(tv_sec: second, tv_nsec: 0), timespec(tv_sec: second, tv_nsec: 0)]
      #expect(utimensat(AT_FDCWD, spool.path("new/\(name)"), &times, 0) == 0)
    }
    #expect(fileStatus(spool.path("new/late"))?.st_mtim.tv_sec == Int.max)
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.names("done").count == 3, "\(result)")
  }

  @Test func `a watching worker goes on when there is room`() async throws {
    let server = try server()
    try disk.fill(megabytes: 16)
    let worker = try startSpoolrun(["-v", "--min-free", "4M", spool.root])
    try spool.drop("a", "url: \(server.url("/a"))\nsize: \(Self.body.count)\n")
    try spool.drop("b", "\(server.url("/small"))\n")
    try await waitUntil("the small one is done") { spool.places(of: "b") == ["done/b"] }
    #expect(spool.places(of: "a") == ["new/a"])
    disk.empty()
    try await waitUntil("the large one is done") { spool.places(of: "a") == ["done/a"] }
    let result = try await worker.stop()
    #expect(result.status == .exited(0) && result.errors.split(separator: " waits-for-room ").count == 2, "\(result)")
  }

  /// Each fits alone; together they would fill the disk, and neither could go on.
  @Test func `room that a running transfer will need is not given to another`() async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/small" { return try reply.respond("200 OK", body: [1]) }
      try reply.head("200 OK", ["Content-Length: \(Self.body.count)"])
      guard request.target == "/a" else { return try reply.send(Self.body) }
      try reply.send(Self.body.prefix(1000))
      try reply.stall()
    }
    try disk.fill(megabytes: 9)
    try spool.drop("a", "url: \(server.url("/a"))\ntimeout: 1h\n")
    let worker = try startSpoolrun(["--min-free", "4M", spool.root])
    try await waitUntil("the first is under way, and its size is known") { spool.length("partial/a.part") == 1000 }
    try spool.drop("b", "url: \(server.url("/b"))\nsize: \(Self.body.count)\n")
    try spool.drop("c", "\(server.url("/b"))\n")
    try spool.drop("d", "\(server.url("/small"))\n")
    try await waitUntil("what fits is done") { spool.places(of: "d") == ["done/d"] }
    try await waitUntil("the size is asked for") { spool.places(of: "c") == ["partial/c"] }
    #expect(spool.places(of: "b") == ["new/b"])
    #expect(unlink(spool.path(try spool.claim(of: "a"))) == 0)
    try await waitUntil("another has the room") { spool.names("done").count == 2 }
    try await worker.stop()
    #expect(spool.names("failed") == [] && spool.names("partial").filter { $0.hasSuffix(".part") } == [])
  }

  @Test func `a body of unknown size stops before the room that is to be left`() async throws {
    let server = try ScriptedServer { request, reply in
      let start = request.rangeStart ?? 0
      let range = start > 0 ? ["Content-Range: bytes \(start)-\(Self.body.count - 1)/\(Self.body.count)"] : []
      try reply.head(
        start > 0 ? "206 Partial Content" : "200 OK", ["ETag: \"1\"", "Transfer-Encoding: chunked"] + range)
      try reply.send(String(Self.body.count - start, radix: 16) + "\r\n")
      try reply.send(Self.body[start...])
      try reply.send("\r\n0\r\n\r\n")
    }
    try disk.fill(megabytes: 17)
    try spool.drop("a", "\(server.url("/a"))\n")
    expectShortage(try await once(), isTold: true)
    #expect(spool.names("partial") == ["a", "a.part"])
    #expect(disk.free > 2 << 20, "it is looked at once a MiB")
    #expect(try !spool.lines("partial/a").contains { $0.key == "failed" })
    disk.empty()
    try await once().exits(0)
    #expect(try spool.payload("a") == Self.body)
    #expect(server.requests.map { $0.rangeStart != nil } == [false, true])
  }
}
