import Glibc
import TestSupport
import Testing

/// `verify --refetch`: what was damaged on disk is repaired in a new file, and replaced in one step.
@Suite struct RefetchTests {
  /// Five pieces of 1 MiB, the last one short.
  private static let bytes = (0..<300_000).flatMap { Array("\($0) piece by piece ".utf8) }
  private static let piece = 1 << 20

  private func scene(withPieces: Bool) async throws -> (Scene, ScriptedServer) {
    let server = try ScriptedServer { request, reply in
      guard let start = request.rangeStart else { return try reply.respond("200 OK", body: Self.bytes) }
      let end = min(Self.bytes.count, (request.rangeEnd ?? .max - 1) + 1)
      try reply.respond(
        "206 Partial Content", ["Content-Range: bytes \(start)-\(end - 1)/\(Self.bytes.count)"],
        body: Self.bytes[start..<end])
    }
    let scene = try Scene()
    _ = try await scene.spoolrun("add", server.url("/a"))
    try await scene.spool.once(exits: 0)
    guard withPieces else { return (scene, server) }
    let list = "\(scene.spool.root)/../list"
    try writeFile(list, try await scene.spoolrun("verify", "--pieces", "a").output)
    unlink(scene.spool.path("done/a"))
    unlink(scene.spool.path("files/a"))
    _ = try await scene.spoolrun("add", "--pieces", list, server.url("/a"))
    try await scene.spool.once(exits: 0)
    return (scene, server)
  }

  @Test(arguments: [true, false])
  func `a flipped bit on disk costs one piece, or the file`(withPieces: Bool) async throws {
    let (scene, server) = try await scene(withPieces: withPieces)
    let path = scene.spool.path("files/a")
    var damaged = Self.bytes
    damaged[2 * Self.piece + 5] ^= 8
    try writeFile(path, damaged)
    try await scene.spoolrun("verify").exits(1, saying: "verify --refetch")
    let before = server.requests.count

    try await scene.spoolrun("verify", "--refetch").exits(1, printing: "in new now")
    #expect(scene.spool.places(of: "a") == ["new/a"])
    #expect(try readFile(path) == damaged, "until the new bytes are verified")
    let inode = fileStatus(path)?.st_ino
    let run = try await scene.spoolrun("--once", "-v").exits(0)
    #expect(try readFile(path) == Self.bytes && fileStatus(path)?.st_ino != inode, "\(run)")
    let asked = server.requests.dropFirst(before)
    if withPieces {
      #expect(asked.map(\.rangeStart) == [2 * Self.piece] && asked.map(\.rangeEnd) == [3 * Self.piece - 1])
    } else {
      #expect(asked.map(\.rangeStart) == [nil])
    }
    let again = try await scene.spoolrun("verify", "--refetch")
    #expect(again.status == .exited(0) && again.output == "" && again.errors == "", "\(again)")
    #expect(scene.spool.names("new") == [] && scene.spool.names("partial") == [])
  }

  /// All that follows the wrong piece comes again, in the second attempt.
  @Test func `a server that sends no parts repairs a file, too`() async throws {
    let (scene, first) = try await scene(withPieces: true)
    first.stop()
    let server = try ScriptedServer { _, reply in try reply.respond("200 OK", body: Self.bytes) }
    var damaged = Self.bytes
    damaged[2 * Self.piece + 5] ^= 8
    try scene.spool.write("files/a", damaged)
    try await scene.spoolrun("verify", "--refetch").exits(1)
    try await scene.spoolrun("url", "a", server.url("/a")).exits(0)
    try await scene.spool.once(exits: 75)
    #expect(try scene.spool.lastFailure("partial/a")["at"] == "\(2 * Self.piece)")
    try scene.spool.makeDue("a")
    try await scene.spool.once(exits: 0)
    #expect(try readFile(scene.spool.path("files/a")) == Self.bytes)
  }

  @Test func `retry takes a done job whose file is gone or wrong`() async throws {
    let (scene, server) = try await scene(withPieces: false)
    let path = scene.spool.path("files/a")
    let before = server.requests.count
    var result = try await scene.spoolrun("retry", "a")
    #expect(result.status == .exited(0) && scene.spool.places(of: "a") == ["done/a"], "its file is sound: \(result)")
    result = try await scene.spoolrun("retry", "-v", "done/a")
    #expect(result.output.contains("a: done, and its file is sound"), "\(result)")
    for damage in [nil, Self.bytes.map { $0 ^ 1 }] {
      if let damage { try writeFile(path, damage) } else { unlink(path) }
      result = try await scene.spoolrun("retry", "-v", "a").exits(0, printing: "; in new now")
      #expect(scene.spool.places(of: "a") == ["new/a"] && (try? readFile(path)) == damage)
      try await scene.spool.once(exits: 0)
      #expect(try readFile(path) == Self.bytes && scene.spool.places(of: "a") == ["done/a"])
    }
    #expect(server.requests.count == before + 2)
    try scene.spool.move("done/a", "done/b")
    try scene.spool.write("done/a", "url: http://h/a\n")
    result = try await scene.spoolrun("retry", "a").exits(1, saying: "a: no receipt")
  }

  /// The receipt says what it was; who asks for a file that is gone takes what there is now.
  @Test func `retry takes another version only for a file that is gone`() async throws {
    let server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: Array("version \(request.nth)".utf8))
    }
    let scene = try Scene()
    let path = scene.spool.path("files/a")
    _ = try await scene.spoolrun("add", server.url("/a"))
    _ = try await scene.spoolrun("--once")
    try writeFile(path, "damaged")
    try await scene.spoolrun("retry", "a").exits(0)
    _ = try await scene.spoolrun("--once")
    #expect(try scene.spool.lastFailure("partial/a")["code"] == "mismatch-crc32")
    #expect(try readFile(path) == Array("damaged".utf8))
    _ = try await scene.spoolrun("cancel", "a")
    unlink(path)
    _ = try await scene.spoolrun("add", server.url("/a"))
    _ = try await scene.spoolrun("--once")
    unlink(path)
    try await scene.spoolrun("retry", "a").exits(0)
    try await scene.spool.once(exits: 0)
    #expect(try readText(path) == "version \(server.requests.count)")
  }

  @Test func `a payload that is gone, or another file, is fetched as a whole`() async throws {
    let (scene, server) = try await scene(withPieces: true)
    defer { server.stop() }
    let path = scene.spool.path("files/a")
    for bytes in [nil, Self.bytes.map { ~$0 }, Array(Self.bytes.dropLast()), []] {
      if let bytes { try writeFile(path, bytes) } else { unlink(path) }
      _ = try await scene.spoolrun("verify", "--refetch", "a")
      let run = try await scene.spoolrun("--once")
      #expect(try readFile(path) == Self.bytes, "\(run)")
    }
  }

  /// The receipt says what it was: another version is no repair.
  @Test func `a file that the server has changed leaves the old one as it is`() async throws {
    try await replay {
      let other = Array("another version, as long".utf8)
      let first = Array("the first one of this ln".utf8)
      let server = try ScriptedServer { request, reply in
        try reply.respond("200 OK", body: request.nth == 1 ? first : other)
      }
      let scene = try Scene()
      _ = try await scene.spoolrun("add", server.url("/a"))
      _ = try await scene.spoolrun("--once")
      try scene.spool.write("files/a", "damaged")
      _ = try await scene.spoolrun("verify", "--refetch")
      let run = try await scene.spoolrun("--once")
      if server.requests.count > 2 { return false }
      #expect(try scene.spool.lastFailure("partial/a")["code"] == "mismatch-crc32", "\(run)")
      #expect(try readFile(scene.spool.path("files/a")) == Array("damaged".utf8))
      return true
    }
  }

  @Test func `archived receipts, and names that are taken`() async throws {
    let (scene, server) = try await scene(withPieces: false)
    defer { server.stop() }
    let path = scene.spool.path("files/a")
    try writeFile(path, [1])
    mkdir(scene.spool.path("done/archive"), 0o700)
    mkdir(scene.spool.path("done/archive/2026-01"), 0o700)
    try scene.spool.move("done/a", "done/archive/2026-01/a")
    try scene.spool.write("new/a", "https://h.invalid/x\n")
    let taken = try await scene.spoolrun("verify", "--refetch").exits(1, printing: "a: changed: a: ")
    #expect(taken.output.contains("; cannot be put into new: "), "\(taken)")
    unlink(scene.spool.path("new/a"))
    _ = try await scene.spoolrun("verify", "--refetch")
    #expect(scene.spool.places(of: "a") == ["new/a"])
    _ = try await scene.spoolrun("--once")
    #expect(try readFile(path) == Self.bytes)
    try await scene.spoolrun("verify", "--refetch", "--sums", "sfv").exits(64)
  }

  /// Two receipts in `done` for one file, as `subscribe --entries file` makes them. The older one would bring the old
  /// file back.
  @Test func `a file that a newer job has replaced is not brought back`() async throws {
    let server = try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: Array("\(request.target)\n".utf8))
    }
    let scene = try Scene()
    for name in ["b", "a"] {
      try scene.spool.drop(name, "\(server.url("/\(name)"))\noutput: x\noverwrite: yes\n")
      try await scene.spool.once(exits: 0)
    }
    for options in [[], ["--refetch"], ["--refetch", "b"]] {
      let sound = try await scene.spoolrun(["verify"] + options)
      #expect(sound.status == .exited(0) && sound.output == "b: replaced since by done/a\n", "\(sound)")
    }
    let older = try await scene.spoolrun("retry", "-v", "b")
    #expect(older.status == .exited(0) && older.output == "b: replaced since by done/a\n", "\(older)")
    try scene.spool.write("files/x", "damaged")
    try await scene.spoolrun("verify", "--refetch").exits(1, printing: "a: changed: x")
    // Also as long as the newer one waits.
    let again = try await scene.spoolrun("verify", "--refetch")
    #expect(again.status == .exited(0) && again.output == "b: replaced since by new/a\n", "\(again)")
    #expect(scene.spool.names("new") == ["a"] && scene.spool.names("done") == ["b"])
    try await scene.spool.once(exits: 0)
    #expect(try scene.spool.payload("x") == Array("/a\n".utf8))
  }

  @Test func `an empty output directory may be a disk that is not mounted`() async throws {
    let (scene, server) = try await scene(withPieces: false)
    defer { server.stop() }
    _ = try await scene.spoolrun("add", server.url("/b"))
    _ = try await scene.spoolrun("--once")
    unlink(scene.spool.path("files/a"))
    try #require(rename(scene.spool.path("files/b"), scene.spool.path("hold/.b")) == 0)
    let refused = try await scene.spoolrun("verify", "--refetch")
    #expect(refused.status == .exited(1) && scene.spool.names("new") == [], "\(refused)")
    #expect(refused.output.contains("a: missing: a; not put into new: files has none of its files"), "\(refused)")
    try #require(rename(scene.spool.path("hold/.b"), scene.spool.path("files/b")) == 0)
    _ = try await scene.spoolrun("verify", "--refetch")
    #expect(scene.spool.names("new") == ["a"])
  }

  /// It did what it was to do in time.
  @Test func `the time by which a job had to be done is over`() async throws {
    let (scene, server) = try await scene(withPieces: false)
    defer { server.stop() }
    let path = scene.spool.path("done/a")
    try writeFile(path, Array("expires: 2020-01-01T00:00:00Z\n".utf8) + readFile(path))
    unlink(scene.spool.path("files/a"))
    _ = try await scene.spoolrun("verify", "--refetch", "a")
    let run = try await scene.spoolrun("--once")
    #expect(try run.status == .exited(0) && scene.spool.payload("a") == Self.bytes, "\(run)")
  }
}
