import Glibc
import TestSupport
import Testing

/// A worker that died between `verified:` and the payload's name.
@Suite struct InterruptedCommitTests {
  private let scene: Scene

  init() throws { scene = try Scene() }

  /// - Parameter place: what bears the verified inode's number.
  /// - Parameter more: what a person has added to the job since.
  private func leave(
    _ data: [UInt8], as place: String = "partial/x.part", verified: [UInt8] = payload, _ more: String = "",
    at job: String = "partial/x", in scene: Scene
  ) throws {
    try scene.spool.write(place, data)
    let line = try Self.line(verified, scene.spool.path(place))
    let text = "url: \(scene.server.url("/fast"))\noutput: o\n\(more)\(line)"
    try scene.spool.write(job, text)
  }

  /// - Parameter path: of the file that bears the inode.
  private static func line(_ verified: [UInt8], _ path: String) throws -> String {
    let (sum, inode) = (hex8(independentCRC32(verified)), try #require(fileStatus(path)).st_ino)
    return "verified: 2026-01-02T03:04:05Z size=\(verified.count) crc32=\(sum) part=\(inode)\n"
  }

  @Test func `verified data gets its name without another request`() async throws {
    try leave(payload, in: scene)
    try await scene.spool.once(exits: 0)
    #expect(try scene.spool.payload("o") == payload && scene.server.requests.isEmpty)
  }

  /// Its number may have been given out again.
  @Test func `another file under the verified inode's number is never published, nor resumed`() async throws {
    try await replay {
      let scene = try Scene()
      try leave(payload.reversed(), in: scene)
      let first = try await scene.spoolrun("--once")
      if !scene.server.requests.isEmpty { return false }
      #expect(first.status == .exited(75), "\(first)")
      #expect(scene.spool.places(of: "x") == ["partial/x"] && scene.spool.names("files") == [])
      #expect(try scene.spool.text("partial/x").contains("code=mismatch-crc32"))
      try await scene.spoolrun("retry", "x")
      try await scene.spool.once(exits: 0)
      #expect(try scene.spool.payload("o") == payload)
      #expect(scene.server.requests.map(\.rangeStart) == [nil])
      return true
    }
  }

  /// It has its final name already, by which anybody may have changed it: no receipt may say that this is what was
  /// received.
  @Test func `a payload that was changed before its receipt gets none`() async throws {
    try leave(payload, in: scene)
    #expect(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    try scene.spool.write("files/o", payload.reversed())
    try await scene.spool.once(exits: 1)
    #expect(scene.spool.places(of: "x") == ["failed/x"])
    let text = try scene.spool.text("failed/x")
    #expect(text.contains("code=output-exists") && !text.contains("done:"))
  }

  /// On another file system than the spool it may be anybody's, and here as well once the data is gone.
  @Test func `a stranger's output under the verified inode's number is not taken for the payload`() async throws {
    let stranger = [UInt8](payload.reversed())
    try leave(stranger, as: "files/o", in: scene)
    try await scene.spool.once(exits: 1)
    #expect(scene.spool.places(of: "x") == ["failed/x"] && scene.server.requests.isEmpty)
    #expect(try scene.spool.text("failed/x").contains("code=output-exists"))
    #expect(try scene.spool.payload("o") == stranger)
  }

  /// SSHFS numbers inodes for each mount, so the worker of another host sees another number.
  @Test(arguments: [false, true]) func `a published payload is known by its content`(hasReceipt: Bool) async throws {
    try leave(payload, in: scene)
    try scene.spool.write("files/o", payload)
    if hasReceipt {
      let receipt = "done: 2026-01-02T03:04:05Z attempts=1 output=o bytes-fetched=\(payload.count) seconds=1\n"
      try scene.spool.write("partial/x", try scene.spool.text("partial/x") + receipt)
      // As another worker made it anew.
      try scene.spool.write("partial/x.part", [])
    } else {
      try #require(unlink(scene.spool.path("partial/x.part")) == 0)
    }
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.server.requests.isEmpty, "\(result)")
    #expect(scene.spool.places(of: "x") == ["done/x"] && scene.spool.names("partial") == [])
    #expect(try scene.spool.payload("o") == payload)
  }

  // MARK: what a person has added since

  private static let wrong = [UInt8](payload.reversed())

  private func digest(of bytes: [UInt8]) async throws -> String {
    let directory = try TemporaryDirectory()
    try writeFile("\(directory.path)/data", bytes)
    let line = try await runTool(["/usr/bin/sha256sum", "\(directory.path)/data"]).output
    return "sha256: \(line.prefix { $0 != " " })\n"
  }

  /// Nothing was declared when it was verified.
  @Test(arguments: [true, false])
  func `verified data is compared with a digest that was added since`(isClaimed: Bool) async throws {
    let digest = try await digest(of: payload)
    let job = isClaimed ? "cur/x:\(try hostName()).1.0000000a" : "partial/x"
    try leave(Self.wrong, verified: Self.wrong, digest, at: job, in: scene)
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.spool.places(of: "x") == ["done/x"], "\(result)")
    #expect(try scene.spool.payload("o") == payload)
    #expect(scene.server.requests.map(\.rangeStart) == [nil])
  }

  /// Whoever reads a file that is replaced sees it until another one takes its place.
  @Test(arguments: [false, true])
  func `a payload that a digest added since does not fit is taken back, or replaced`(overwrites: Bool) async throws {
    let scene = try Scene { request, reply in
      if request.nth == 1 { return try reply.respond("404 Not Found", body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: payload)
    }
    let digest = try await digest(of: payload)
    try leave(Self.wrong, verified: Self.wrong, digest + (overwrites ? "overwrite: yes\n" : ""), in: scene)
    try #require(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    let first = try await scene.spoolrun("--once")
    #expect(first.status != .exited(0) && scene.server.requests.count == 1, "\(first)")
    #expect(try scene.spool.payload("o") == (overwrites ? Self.wrong : nil))
    try await scene.spoolrun("retry", "x")
    let second = try await scene.spoolrun("--once")
    #expect(second.status == .exited(0) && scene.spool.places(of: "x") == ["done/x"], "\(second)")
    #expect(try scene.spool.payload("o") == payload)
  }

  @Test func `a payload that a digest added since fits stays`() async throws {
    let digest = try await digest(of: payload)
    try leave(payload, digest, in: scene)
    try #require(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    let inode = fileStatus(scene.spool.path("files/o"))?.st_ino
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.server.requests.isEmpty, "\(result)")
    #expect(fileStatus(scene.spool.path("files/o"))?.st_ino == inode && scene.spool.places(of: "x") == ["done/x"])
  }

  @Test func `the receipt of a published payload has a digest that was added since`() async throws {
    let digest = try await digest(of: payload)
    try leave(payload, digest, in: scene)
    try #require(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    let result = try await scene.spoolrun("--once")
    let verified = try scene.spool.lines("done/x").last { $0.key == "verified" }
    #expect("sha256: \(verified?["sha256"] ?? "")\n" == digest, "\(result)")
  }

  /// A frozen worker still has it.
  @Test func `a locked payload that a digest added since does not fit is replaced`() async throws {
    let digest = try await digest(of: payload)
    try leave(Self.wrong, verified: Self.wrong, digest + "overwrite: yes\n", in: scene)
    try #require(link(scene.spool.path("partial/x.part"), scene.spool.path("files/o")) == 0)
    let data = open(scene.spool.path("partial/x.part"), O_RDWR | O_CLOEXEC)
    try #require(data >= 0)
    defer { close(data) }
    try #require(flock(data, LOCK_EX | LOCK_NB) == 0)
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.spool.places(of: "x") == ["done/x"], "\(result)")
    #expect(try scene.spool.payload("o") == payload)
  }

  // MARK: a file that came since

  /// All of the data is there, and verified, and a file is at the output.
  private func leaveBeside(_ file: [UInt8], isOlder: Bool, in scene: Scene) throws {
    let (job, data) = (scene.spool.path("partial/x"), scene.spool.path("partial/x.part"))
    try scene.spool.addPartial(
      "x", job: "url: \(scene.server.url("/fast"))\noutput: o\noverwrite: yes\n",
      facts: PartialFacts(size: payload.count, etag: "\"1\""), part: payload)
    let line = try Self.line(payload, data)
    try writeFile(job, try readText(job) + line)
    try setModificationTime(data, secondsFromNow: isOlder ? -60 : 60)
    try scene.spool.write("files/o", file)
  }

  /// Where the server sends parts, a byte shows that it has the same file still.
  @Test(arguments: [true, false])
  func `verified data that is older than the file it is to replace is asked for again`(isOlder: Bool) async throws {
    try leaveBeside([1], isOlder: isOlder, in: scene)
    try await scene.spool.once(exits: 0)
    #expect(try scene.spool.payload("o") == payload)
    #expect(scene.server.requests.map(\.rangeStart) == (isOlder ? [payload.count - 1] : []))
  }

  @Test func `verified data that is older replaces nothing where nobody answers for it`() async throws {
    let scene = try Scene { _, reply in try reply.respond("404 Not Found", body: []) }
    try leaveBeside([1], isOlder: true, in: scene)
    let result = try await scene.spoolrun("--once")
    #expect(result.status != .exited(0) && scene.server.requests.count > 0, "\(result)")
    #expect(try scene.spool.payload("o") == [1])
  }
}
